-- What the services of schema version 4 ask, word for word, with their parameters.

PREPARE ready AS SELECT FROM water.datasets LIMIT 1;
EXECUTE ready;

PREPARE versions AS SELECT name, version, updated_at FROM water.datasets WHERE name IN ('stress', 'risk');
EXECUTE versions;

PREPARE stress AS SELECT dept, stress_index, level FROM water.stress ORDER BY dept;
EXECUTE stress;

PREPARE risk AS SELECT dept, flood, drought, overall, rating, updated_at FROM water.risk ORDER BY dept;
EXECUTE risk;

PREPARE analyses AS SELECT account.total, page.* FROM water.analyses_accounts AS account LEFT JOIN LATERAL (  SELECT ordinal, created_at, id FROM water.analyses_anchors   WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1) AS anchor ON true LEFT JOIN LATERAL (  SELECT id, company_name, sector_code, dept_code, score, rating, created_at   FROM water.analyses AS record   WHERE record.account_id = $1 AND (record.created_at, record.id)     <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, ''))   ORDER BY record.created_at DESC, record.id DESC   LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)) AS page ON $3 < account.total WHERE account.account_id = $1 ORDER BY page.created_at DESC, page.id DESC;
EXECUTE analyses ('acme', 20, 0);
EXECUTE analyses ('acme', 20, 90);

PREPARE audits AS SELECT account.total, page.* FROM water.audits_accounts AS account LEFT JOIN LATERAL (  SELECT ordinal, created_at, id FROM water.audits_anchors   WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1) AS anchor ON true LEFT JOIN LATERAL (  SELECT id, company_name, sector_code, dept_code, score, rating, created_at   FROM water.audits AS record   WHERE record.account_id = $1 AND (record.created_at, record.id)     <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, ''))   ORDER BY record.created_at DESC, record.id DESC   LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)) AS page ON $3 < account.total WHERE account.account_id = $1 ORDER BY page.created_at DESC, page.id DESC;
EXECUTE audits ('acme', 20, 0);
EXECUTE audits ('acme', 20, 60);

PREPARE state AS SELECT version, now(), coalesce(( SELECT purge FROM water.last_purges WHERE account_sha256 = sha256(convert_to($2, 'UTF8'))), 0) FROM water.datasets WHERE name = $1;
EXECUTE state ('analyses', 'acme');

PREPARE rows_of_analyses AS SELECT 0::bigint, id, company_name, sector_code, dept_code, score, rating, created_at FROM water.analyses WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3;
EXECUTE rows_of_analyses ('acme', '', 5);

PREPARE changes_of_analyses AS (SELECT version, id, company_name, sector_code, dept_code, score, rating, created_at  FROM water.analyses  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4  ORDER BY version, id LIMIT $5) UNION ALL (SELECT version, id, NULL::text, NULL::text, NULL::text, NULL::double precision, NULL::text,         NULL::timestamptz  FROM water.analyses_deletions AS gone  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4 AND NOT EXISTS (    SELECT FROM water.analyses AS record    WHERE record.account_id = gone.account_id AND record.id = gone.id)  ORDER BY version, id LIMIT $5) ORDER BY version, id LIMIT $5;
EXECUTE changes_of_analyses ('acme', 0, '', 9, 5);
EXECUTE changes_of_analyses ('acme', 2, '', 9, 5);

PREPARE rows_of_audits AS SELECT 0::bigint, id, company_name, sector_code, dept_code, score, rating, created_at FROM water.audits WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3;
EXECUTE rows_of_audits ('acme', '', 5);

PREPARE changes_of_audits AS (SELECT version, id, company_name, sector_code, dept_code, score, rating, created_at  FROM water.audits  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4  ORDER BY version, id LIMIT $5) UNION ALL (SELECT version, id, NULL::text, NULL::text, NULL::text, NULL::double precision, NULL::text,         NULL::timestamptz  FROM water.audits_deletions AS gone  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4 AND NOT EXISTS (    SELECT FROM water.audits AS record    WHERE record.account_id = gone.account_id AND record.id = gone.id)  ORDER BY version, id LIMIT $5) ORDER BY version, id LIMIT $5;
EXECUTE changes_of_audits ('acme', 0, '', 9, 5);

PREPARE sources AS SELECT dataset, source, source_url, licence, as_of, loaded_at, synthetic, derived_levels, coalesce(records, CASE dataset WHEN 'analyses' THEN (SELECT total FROM water.analyses_accounts WHERE account_id = $1) WHEN 'audits' THEN (SELECT total FROM water.audits_accounts WHERE account_id = $1) END, 0) AS records FROM water.sources ORDER BY array_position(ARRAY['stress', 'risk', 'vigieau', 'analyses', 'audits'], dataset);
EXECUTE sources ('acme');
