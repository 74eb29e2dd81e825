-- A load of the loader of schema version 2, word for word where it changes a history: one row is
-- new, one changes, one is confirmed. Then a purge of another account.

CREATE TEMPORARY TABLE staged (
    line bigint NOT NULL, account_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL, score double precision NOT NULL, company_name text NOT NULL,
    sector_code text NOT NULL, dept_code text NOT NULL, rating text NOT NULL
);
INSERT INTO staged
SELECT row_number() OVER (), account_id, id, created_at, score, company_name, sector_code, dept_code, rating
FROM water.analyses WHERE account_id = 'acme' AND id IN ('changed', 'confirmed')
UNION ALL
SELECT 9, account_id, 'new', created_at, score, company_name, sector_code, dept_code, rating
FROM water.analyses WHERE account_id = 'acme' AND id = 'confirmed';
UPDATE staged SET score = 9 WHERE id = 'changed';

BEGIN;
SELECT pg_try_advisory_xact_lock(hashtext('water.' || 'analyses'));
CREATE TEMPORARY TABLE found ON COMMIT DROP AS
    SELECT staged.line, staged.account_id, staged.id, staged.created_at,
           record.created_at AS old_created_at,
           coalesce(record.as_of > timestamptz '2026-06-01T00:00:00.000Z', false) AS older,
           coalesce(record.as_of <= timestamptz '2026-06-01T00:00:00.000Z', true) AND
           (staged.created_at, staged.score, staged.company_name, staged.sector_code, staged.dept_code, staged.rating)
           IS DISTINCT FROM
           (record.created_at, record.score, record.company_name, record.sector_code, record.dept_code, record.rating)
           AS differs
    FROM staged JOIN water.analyses AS record USING (account_id, id);
INSERT INTO water.analyses
        (account_id, id, created_at, score, company_name, sector_code, dept_code, rating, as_of)
    SELECT account_id, id, created_at, score, company_name, sector_code, dept_code, rating, timestamptz '2026-06-01T00:00:00.000Z'
    FROM staged
    WHERE NOT EXISTS (SELECT FROM found WHERE found.line = staged.line)
    ORDER BY account_id, created_at DESC, id DESC;
UPDATE water.analyses AS record
    SET created_at = staged.created_at, score = staged.score, company_name = staged.company_name,
        sector_code = staged.sector_code, dept_code = staged.dept_code, rating = staged.rating,
        as_of = timestamptz '2026-06-01T00:00:00.000Z'
    FROM found JOIN staged USING (line)
    WHERE found.differs AND (record.account_id, record.id) = (found.account_id, found.id);
UPDATE water.analyses AS record SET as_of = timestamptz '2026-06-01T00:00:00.000Z' FROM found
    WHERE NOT found.differs AND NOT found.older AND record.as_of IS DISTINCT FROM timestamptz '2026-06-01T00:00:00.000Z'
      AND (record.account_id, record.id) = (found.account_id, found.id);
UPDATE water.analyses_accounts SET total = total + 1 WHERE account_id = 'acme';
UPDATE water.datasets SET as_of = greatest(as_of, '2026-06-01') WHERE name = 'analyses';
UPDATE water.datasets SET version = version + 1, updated_at = greatest(updated_at, '2026-06-01')
    WHERE name = 'analyses';
INSERT INTO water.loads (dataset, as_of, sha256, source, synthetic, loaded_by,
                         rows, inserted, updated, removed, derived)
    VALUES ('analyses', '2026-06-01', '\x07', 'export.csv', false, 'nobody', 3, 1, 1, 0, '{}');
COMMIT;

BEGIN;
SELECT pg_try_advisory_xact_lock(hashtext('water.' || 'analyses'));
DELETE FROM water.analyses_anchors WHERE account_id = 'other';
DELETE FROM water.analyses_accounts WHERE account_id = 'other';
DELETE FROM water.analyses WHERE account_id = 'other';
INSERT INTO water.purges (account_sha256, purged_by, analyses, audits)
    VALUES (sha256(convert_to('other', 'UTF8')), 'nobody', 1, 0);
COMMIT;
