-- Readers and writers of the version before go on working: the trigger writes the ids, whoever loads.

-- The random id of each version of a dataset. After a restore, a recovery to a point in time or a
-- failover that lost a load, another load may get a number that was given before, but never its id.
CREATE TABLE water.versions (
    dataset text NOT NULL REFERENCES water.datasets (name),
    version bigint NOT NULL,
    id      uuid NOT NULL DEFAULT gen_random_uuid(),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dataset, version)
);

-- Ids are kept for 91 days after the next version: tokens with them are good for 90.
CREATE FUNCTION water.identify_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO water.versions (dataset, version) VALUES (NEW.name, NEW.version)
    ON CONFLICT (dataset, version) DO UPDATE SET id = excluded.id, at = excluded.at;
    DELETE FROM water.versions WHERE dataset = NEW.name AND version < (
        SELECT max(version) FROM water.versions
        WHERE dataset = NEW.name AND at < clock_timestamp() - interval '91 days');
    RETURN NULL;
END
$$;
CREATE TRIGGER identify_version AFTER UPDATE OF version ON water.datasets FOR EACH ROW
    WHEN (NEW.version <> OLD.version) EXECUTE FUNCTION water.identify_version();

INSERT INTO water.versions (dataset, version) SELECT name, version FROM water.datasets;
