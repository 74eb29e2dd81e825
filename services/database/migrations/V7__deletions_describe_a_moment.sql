-- Loaders of the version before go on working: their deletions describe the moment at which they are made. They
-- still remove those of 91 days ago, and a second deletion of an id keeps the first one's moment.

-- The moment that a deletion describes: a file as old or older brings none of its rows back, however
-- long ago it was.
ALTER TABLE water.analyses_deletions ADD COLUMN as_of timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE water.audits_deletions ADD COLUMN as_of timestamptz NOT NULL DEFAULT clock_timestamp();
UPDATE water.analyses_deletions SET as_of = deleted_at;
UPDATE water.audits_deletions SET as_of = deleted_at;
