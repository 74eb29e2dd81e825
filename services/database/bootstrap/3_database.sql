-- An administrator that is no superuser may give a database only to a role that it is a member of.
GRANT water_owner TO CURRENT_USER;

ALTER ROLE water_owner PASSWORD :'owner_password';
ALTER ROLE water_writer PASSWORD :'writer_password';
ALTER ROLE water_reader PASSWORD :'reader_password';

SELECT 'CREATE DATABASE water OWNER water_owner ENCODING ''UTF8'' TEMPLATE template0'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'water') \gexec

-- Strangers stay out; the writer stages each load in a temporary table.
REVOKE ALL ON DATABASE water FROM PUBLIC;
GRANT CONNECT ON DATABASE water TO water_reader;
GRANT CONNECT, TEMPORARY ON DATABASE water TO water_writer;
