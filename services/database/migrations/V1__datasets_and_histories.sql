-- Everything lives in the schema "water", which the migration runner creates. It runs as the owner
-- of the database (water_owner), needs no superuser, and expects the roles water_writer and
-- water_reader (see bootstrap/).
--
-- Text that is compared or sorted has the collation "C": the API's order is the order of bytes.

-- One row per input. version rises with each load that changed content; the service polls it.
CREATE TABLE water.datasets (
    name       text PRIMARY KEY CHECK (name IN ('stress', 'risk', 'vigieau', 'analyses', 'audits')),
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz, -- newest as-of date that changed content; the API's updatedAt
    as_of      timestamptz  -- as-of date of the last load; an older one is refused
);
INSERT INTO water.datasets (name) VALUES ('stress'), ('risk'), ('vigieau'), ('analyses'), ('audits');

CREATE TABLE water.stress (
    dept          text COLLATE "C" PRIMARY KEY,
    stress_index  double precision NOT NULL CHECK (stress_index BETWEEN 0 AND 5),
    level         text NOT NULL CHECK (level IN ('normal', 'vigilance', 'alerte', 'alerte_renforcee', 'crise')),
    level_derived boolean NOT NULL -- from the index, because no legal level was ever loaded
);

CREATE TABLE water.risk (
    dept       text COLLATE "C" PRIMARY KEY,
    flood      double precision NOT NULL CHECK (flood BETWEEN 0 AND 100),
    drought    double precision NOT NULL CHECK (drought BETWEEN 0 AND 100),
    overall    double precision NOT NULL CHECK (overall BETWEEN 0 AND 100),
    rating     text NOT NULL CHECK (rating IN ('A', 'B', 'C', 'D', 'E')),
    updated_at timestamptz NOT NULL
);

-- The two histories have the same shape: the score and the rating are globalScore and rating of an
-- analysis, score and globalRating of an audit.
CREATE TABLE water.analyses (
    account_id   text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    score        double precision NOT NULL,
    company_name text NOT NULL,
    sector_code  text NOT NULL,
    dept_code    text NOT NULL,
    rating       text NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX analyses_newest_first ON water.analyses (account_id, created_at DESC, id DESC);

CREATE TABLE water.audits (LIKE water.analyses INCLUDING ALL);

-- How many rows each account has: counting a million takes 50 ms, reading this takes none.
CREATE TABLE water.analyses_accounts (
    account_id text COLLATE "C" PRIMARY KEY,
    total      bigint NOT NULL
);
CREATE TABLE water.audits_accounts (LIKE water.analyses_accounts INCLUDING ALL);

-- The key of every 64th row of an account, counted from its oldest: ordinal rows are older.
CREATE TABLE water.analyses_anchors (
    account_id text COLLATE "C" NOT NULL,
    ordinal    bigint NOT NULL CHECK (ordinal % 64 = 0),
    created_at timestamptz NOT NULL,
    id         text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, ordinal)
);
CREATE TABLE water.audits_anchors (LIKE water.analyses_anchors INCLUDING ALL);

-- One row per load: what was loaded, from where, by whom.
CREATE TABLE water.loads (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    loaded_at timestamptz NOT NULL DEFAULT current_timestamp,
    dataset   text NOT NULL REFERENCES water.datasets (name),
    as_of     timestamptz,
    rows      bigint NOT NULL,   -- in the file
    inserted  bigint NOT NULL,
    updated   bigint NOT NULL,
    removed   bigint NOT NULL,
    derived   text[] NOT NULL,   -- départements whose level or rating was derived from the score
    sha256    bytea NOT NULL,    -- of the file as it was read
    source    text NOT NULL,     -- where the file comes from, in its loader's words
    synthetic boolean NOT NULL,  -- generated, not measured
    loaded_by text NOT NULL
);

GRANT USAGE ON SCHEMA water TO water_reader, water_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA water TO water_reader, water_writer;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA water TO water_writer;
REVOKE ALL ON water.loads FROM water_reader;
REVOKE INSERT, DELETE ON water.datasets FROM water_writer;
REVOKE UPDATE, DELETE ON water.loads FROM water_writer;
