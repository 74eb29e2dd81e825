-- Readers and writers of the version before go on working: they name their columns, and what they
-- leave out is filled in.

-- Whether the register brought a level; else a stress file did. Of two levels of one date the
-- register's stays. A new level of a loader of the version before counts as the register's; over a stress
-- file's one it counts as that file's.
ALTER TABLE water.levels ADD COLUMN register boolean NOT NULL DEFAULT true;

-- Answers of the register that were refused since its last load, because levels would end with
-- them. The same levels half a day later are loaded.
CREATE TABLE water.refused_liftings (
    levels_sha256 bytea PRIMARY KEY,
    refused_at    timestamptz NOT NULL -- for the first time
);
