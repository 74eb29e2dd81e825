-- The three roles, where they are missing; without a password nobody logs in as one.
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['water_owner', 'water_writer', 'water_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
    END LOOP;
END
$$;
