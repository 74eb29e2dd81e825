-- Readers and writers of the version before go on working: they name their columns, and what they
-- leave out is filled in.

-- The dataset's version with which a row last changed. A load takes the next one under the lock
-- that it holds until it commits, so versions become visible in their order. 0: before this
-- migration.
ALTER TABLE water.analyses ADD COLUMN version bigint NOT NULL DEFAULT 0;
ALTER TABLE water.audits ADD COLUMN version bigint NOT NULL DEFAULT 0;

-- A loader of the version before names no version: its rows get theirs here. Later loaders do, and
-- the conditions keep their rows out of the function.
CREATE FUNCTION water.stamp_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT version + 1 INTO STRICT NEW.version FROM water.datasets WHERE name = TG_TABLE_NAME;
    RETURN NEW;
END
$$;
CREATE TRIGGER stamp_inserted BEFORE INSERT ON water.analyses FOR EACH ROW
    WHEN (NEW.version = 0) EXECUTE FUNCTION water.stamp_version();
CREATE TRIGGER stamp_inserted BEFORE INSERT ON water.audits FOR EACH ROW
    WHEN (NEW.version = 0) EXECUTE FUNCTION water.stamp_version();
CREATE TRIGGER stamp_updated BEFORE UPDATE ON water.analyses FOR EACH ROW
    WHEN (NEW.version = OLD.version AND
          (NEW.created_at, NEW.score, NEW.company_name, NEW.sector_code, NEW.dept_code, NEW.rating)
          IS DISTINCT FROM
          (OLD.created_at, OLD.score, OLD.company_name, OLD.sector_code, OLD.dept_code, OLD.rating))
    EXECUTE FUNCTION water.stamp_version();
CREATE TRIGGER stamp_updated BEFORE UPDATE ON water.audits FOR EACH ROW
    WHEN (NEW.version = OLD.version AND
          (NEW.created_at, NEW.score, NEW.company_name, NEW.sector_code, NEW.dept_code, NEW.rating)
          IS DISTINCT FROM
          (OLD.created_at, OLD.score, OLD.company_name, OLD.sector_code, OLD.dept_code, OLD.rating))
    EXECUTE FUNCTION water.stamp_version();

-- Rows that were deleted one by one; loads trim the list. The account's row in history_accounts
-- goes only with a purge, which takes these along, whichever loader purges.
CREATE TABLE water.analyses_deletions (
    account_id text COLLATE "C" NOT NULL REFERENCES water.analyses_accounts ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL, -- the dataset's, as of a row
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX analyses_deletions_changes ON water.analyses_deletions (account_id, version, id);
CREATE TABLE water.audits_deletions (
    account_id text COLLATE "C" NOT NULL REFERENCES water.audits_accounts ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX audits_deletions_changes ON water.audits_deletions (account_id, version, id);

-- The last purge of each account, lifted or not, without a name: what a client learned before it
-- cannot be brought up to date.
CREATE INDEX purges_by_account ON water.purges (account_sha256, id);
CREATE VIEW water.last_purges AS
SELECT account_sha256, max(id) AS purge FROM water.purges GROUP BY account_sha256;

ALTER TABLE water.loads
    ADD COLUMN licence    text,
    ADD COLUMN source_url text;
CREATE INDEX loads_by_dataset ON water.loads (dataset, id);

-- Where each loaded dataset comes from, for everyone: no file names, loaders or hashes. A load
-- that was given no source is labelled with its file's name, so a label is shown only beside a
-- licence or a link.
--
-- The load that tells is the last one; of a history, whose rows of several loads stand side by
-- side, the one of the latest date. One synthetic load makes a history synthetic, one synthetic
-- level the levels. Loads of a history that removed rows were deletions. The counts of histories
-- are each account's own.
CREATE VIEW water.sources AS
SELECT input.name AS dataset,
       CASE WHEN told.licence IS NOT NULL OR told.source_url IS NOT NULL THEN told.source END AS source,
       told.source_url, told.licence, told.as_of, told.loaded_at,
       told.synthetic OR input.history AND EXISTS (
           SELECT FROM water.loads
           WHERE dataset = input.name AND synthetic AND inserted + updated > 0
       ) OR input.name = 'vigieau' AND EXISTS (SELECT FROM water.levels WHERE synthetic) AS synthetic,
       CASE input.name
           WHEN 'stress' THEN (SELECT count(*) FROM water.stress)
           WHEN 'risk' THEN (SELECT count(*) FROM water.risk)
           WHEN 'vigieau' THEN (SELECT count(*) FROM water.levels)
       END AS records,
       CASE input.name
           WHEN 'stress' THEN ARRAY(SELECT dept FROM water.stress WHERE level_derived ORDER BY dept)
           ELSE '{}'
       END AS derived_levels
FROM (SELECT name, name IN ('analyses', 'audits') AS history FROM water.datasets) AS input
CROSS JOIN LATERAL (
    SELECT source, source_url, licence, as_of, loaded_at, synthetic FROM water.loads
    WHERE dataset = input.name AND NOT (input.history AND removed > 0)
    ORDER BY CASE WHEN input.history THEN as_of END DESC NULLS LAST, id DESC
    LIMIT 1
) AS told;
