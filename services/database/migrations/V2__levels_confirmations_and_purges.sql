-- Readers and writers of the version before know nothing of this, and go on working: nothing that
-- they use is changed.

-- A table that a later migration makes is readable and loadable without words of its own.
ALTER DEFAULT PRIVILEGES IN SCHEMA water GRANT SELECT ON TABLES TO water_reader, water_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA water GRANT INSERT, UPDATE, DELETE ON TABLES TO water_writer;

-- What was migrated is the owner's to say. The table is older than V1's grants, which hit it too.
REVOKE INSERT, UPDATE, DELETE ON water.migrations FROM water_writer;

-- The legal level of each département and its own date, with a stress record or without one.
-- water.stress has a copy, which is what is served.
CREATE TABLE water.levels (
    dept      text COLLATE "C" PRIMARY KEY,
    level     text NOT NULL,
    as_of     timestamptz NOT NULL,
    synthetic boolean NOT NULL
);
INSERT INTO water.levels (dept, level, as_of, synthetic)
SELECT dept, level,
       coalesce((SELECT as_of FROM water.datasets WHERE name = 'vigieau'),
                (SELECT as_of FROM water.datasets WHERE name = 'stress'), '2000-01-01T00:00:00Z'),
       coalesce((SELECT synthetic FROM water.loads WHERE dataset = 'vigieau' ORDER BY id DESC LIMIT 1),
                (SELECT synthetic FROM water.loads WHERE dataset = 'stress' ORDER BY id DESC LIMIT 1), false)
FROM water.stress WHERE NOT level_derived;

-- The greatest as-of date of a file that had the row: an older file does not revert it. Rows from
-- before have none and are the oldest.
ALTER TABLE water.analyses ADD COLUMN as_of timestamptz;
ALTER TABLE water.audits ADD COLUMN as_of timestamptz;

-- Accounts that were removed. A later file does not bring one back before its purge is lifted. The
-- account's name is not kept.
CREATE TABLE water.purges (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_sha256 bytea NOT NULL,
    purged_at      timestamptz NOT NULL DEFAULT current_timestamp,
    purged_by      text NOT NULL,
    analyses       bigint NOT NULL, -- rows that went
    audits         bigint NOT NULL,
    lifted_at      timestamptz
);
CREATE INDEX purges_in_force ON water.purges (account_sha256) WHERE lifted_at IS NULL;
REVOKE ALL ON water.purges FROM water_reader;
REVOKE DELETE ON water.purges FROM water_writer;
