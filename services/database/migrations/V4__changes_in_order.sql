-- What changed since a version, in order. A migration of its own: it keeps loads waiting while it
-- reads all rows, and readers not at all.
CREATE INDEX analyses_changes ON water.analyses (account_id, version, id);
CREATE INDEX audits_changes ON water.audits (account_id, version, id);
