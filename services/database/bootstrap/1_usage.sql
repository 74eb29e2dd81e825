-- Roles and database for Water Data, to be run once by an administrator, before any migration:
--
--   water-ingest bootstrap-sql | psql --set ON_ERROR_STOP=1 --set owner_password=… \
--        --set writer_password=… --set reader_password=… postgresql://administrator@host/postgres
--
-- Running it again changes nothing but the passwords. Each role logs in with its own URL:
--   water_owner   runs migrations and owns the database
--   water_writer  loads data (water-ingest)
--   water_reader  reads it (the HTTP services)

