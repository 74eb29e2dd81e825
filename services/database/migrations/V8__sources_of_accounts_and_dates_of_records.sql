-- Readers and writers of the version before go on working: they name their columns, and the schema dates the records that
-- any loader changes.

-- The newest as-of date that changed the record: the API's updatedAt of one département. A record without one has the
-- dataset's.
ALTER TABLE water.stress ADD COLUMN updated_at timestamptz;
UPDATE water.stress SET updated_at = (SELECT updated_at FROM water.datasets WHERE name = 'stress');

-- Dates a record that was changed, at the end of its load: only then is the load noted, with its date. Rows that bring a
-- date, from a dump, keep it.
CREATE FUNCTION water.date_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE water.stress SET updated_at = greatest(updated_at, (
        SELECT as_of FROM water.loads WHERE dataset IN ('stress', 'vigieau') ORDER BY id DESC LIMIT 1
    )) WHERE dept = NEW.dept;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER date_inserted AFTER INSERT ON water.stress DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.updated_at IS NULL) EXECUTE FUNCTION water.date_record();
CREATE CONSTRAINT TRIGGER date_changed AFTER UPDATE ON water.stress DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((NEW.stress_index, NEW.level, NEW.level_derived)
          IS DISTINCT FROM (OLD.stress_index, OLD.level, OLD.level_derived))
    EXECUTE FUNCTION water.date_record();

-- V5 counted each level that was stored as the register's, which readers are told of now.
UPDATE water.levels SET register = false
WHERE NOT EXISTS (SELECT FROM water.loads WHERE dataset = 'vigieau' AND loads.as_of = levels.as_of);

-- Levels that ended in each refused answer of the register since this time. They may end half a day later, whatever else
-- changed meanwhile. A loader of the version before goes on noting whole answers, by their digest.
ALTER TABLE water.refused_liftings
    DROP CONSTRAINT refused_liftings_pkey,
    ALTER COLUMN levels_sha256 DROP NOT NULL,
    ADD UNIQUE (levels_sha256),
    ADD COLUMN dept text COLLATE "C" UNIQUE;

-- Départements whose level the register gave before and not in this load. A loader of the version before does not note
-- them: they are those whose level has an earlier date than the load.
ALTER TABLE water.loads ADD COLUMN kept_levels text[];
CREATE VIEW water.kept_levels AS
SELECT dept
FROM water.levels CROSS JOIN (
    SELECT as_of, kept_levels FROM water.loads WHERE dataset = 'vigieau' ORDER BY id DESC LIMIT 1
) AS last
WHERE register AND coalesce(dept = ANY (last.kept_levels), levels.as_of < last.as_of);

-- The newest file that had rows of the account, whether or not it changed any, and whether some of its rows may be
-- generated. None before the account's next file: which of several files of one date had its rows is not known, and
-- another account's file must not be shown as its own.
ALTER TABLE water.analyses_accounts
    ADD COLUMN as_of      timestamptz,
    ADD COLUMN loaded_at  timestamptz,
    ADD COLUMN source     text, -- beside a licence or a link only: else it is a file's name
    ADD COLUMN source_url text,
    ADD COLUMN licence    text,
    ADD COLUMN synthetic  boolean;
ALTER TABLE water.audits_accounts
    ADD COLUMN as_of      timestamptz,
    ADD COLUMN loaded_at  timestamptz,
    ADD COLUMN source     text,
    ADD COLUMN source_url text,
    ADD COLUMN licence    text,
    ADD COLUMN synthetic  boolean;
