-- What the services of this version ask, word for word, with their parameters.

PREPARE ready AS SELECT FROM water.datasets LIMIT 1;
EXECUTE ready;

PREPARE versions AS SELECT name, current.version, id, updated_at FROM water.datasets AS current LEFT JOIN water.versions ON dataset = name AND versions.version = current.version WHERE name IN ('stress', 'risk');
EXECUTE versions;

PREPARE stress AS SELECT dept, stress_index, stress.level, CASE WHEN level_derived THEN 'derived' WHEN register THEN 'register' ELSE 'file' END AS level_source, CASE WHEN level_derived THEN input.as_of ELSE levels.as_of END AS level_as_of, coalesce(stress.updated_at, input.updated_at) AS updated_at FROM water.stress LEFT JOIN water.levels USING (dept) CROSS JOIN (SELECT as_of, updated_at FROM water.datasets WHERE name = 'stress') AS input ORDER BY dept;
EXECUTE stress;

PREPARE risk AS SELECT dept, flood, drought, overall, rating, updated_at FROM water.risk ORDER BY dept;
EXECUTE risk;

PREPARE analyses AS SELECT account.total, page.* FROM water.analyses_accounts AS account LEFT JOIN LATERAL (  SELECT ordinal, created_at, id FROM water.analyses_anchors   WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1) AS anchor ON true LEFT JOIN LATERAL (  SELECT id, company_name, sector_code, dept_code, score, rating, created_at   FROM water.analyses AS record   WHERE record.account_id = $1 AND (record.created_at, record.id)     <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, ''))   ORDER BY record.created_at DESC, record.id DESC   LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)) AS page ON $3 < account.total WHERE account.account_id = $1 ORDER BY page.created_at DESC, page.id DESC;
EXECUTE analyses ('acme', 20, 0);
EXECUTE analyses ('acme', 20, 90);

PREPARE audits AS SELECT account.total, page.* FROM water.audits_accounts AS account LEFT JOIN LATERAL (  SELECT ordinal, created_at, id FROM water.audits_anchors   WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1) AS anchor ON true LEFT JOIN LATERAL (  SELECT id, company_name, sector_code, dept_code, score, rating, created_at   FROM water.audits AS record   WHERE record.account_id = $1 AND (record.created_at, record.id)     <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, ''))   ORDER BY record.created_at DESC, record.id DESC   LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)) AS page ON $3 < account.total WHERE account.account_id = $1 ORDER BY page.created_at DESC, page.id DESC;
EXECUTE audits ('acme', 20, 0);
EXECUTE audits ('acme', 20, 60);

PREPARE state AS SELECT version, id, now(), coalesce(( SELECT purge FROM water.last_purges WHERE account_sha256 = sha256(convert_to($2, 'UTF8'))), 0), pg_is_in_recovery(), (SELECT id FROM water.versions WHERE dataset = $1 AND version = $3), (SELECT id FROM water.versions WHERE dataset = $1 AND version = $4), coalesce(CASE $1 WHEN 'analyses' THEN (SELECT total FROM water.analyses_accounts WHERE account_id = $2) ELSE (SELECT total FROM water.audits_accounts WHERE account_id = $2) END, 0) FROM water.datasets JOIN water.versions USING (version) WHERE name = $1 AND dataset = name;
EXECUTE state ('analyses', 'acme', 1, NULL);

PREPARE rows_of_analyses AS SELECT 0::bigint, id, company_name, sector_code, dept_code, score, rating, created_at FROM water.analyses WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3;
EXECUTE rows_of_analyses ('acme', '', 5);

PREPARE changes_of_analyses AS (SELECT version, id, company_name, sector_code, dept_code, score, rating, created_at  FROM water.analyses  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4  ORDER BY version, id LIMIT $5) UNION ALL (SELECT version, id, NULL::text, NULL::text, NULL::text, NULL::double precision, NULL::text,         NULL::timestamptz  FROM water.analyses_deletions AS gone  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4 AND NOT EXISTS (    SELECT FROM water.analyses AS record    WHERE record.account_id = gone.account_id AND record.id = gone.id)  ORDER BY version, id LIMIT $5) ORDER BY version, id LIMIT $5;
EXECUTE changes_of_analyses ('acme', 0, '', 9, 5);
EXECUTE changes_of_analyses ('acme', 2, '', 9, 5);

PREPARE rows_of_audits AS SELECT 0::bigint, id, company_name, sector_code, dept_code, score, rating, created_at FROM water.audits WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3;
EXECUTE rows_of_audits ('acme', '', 5);

PREPARE changes_of_audits AS (SELECT version, id, company_name, sector_code, dept_code, score, rating, created_at  FROM water.audits  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4  ORDER BY version, id LIMIT $5) UNION ALL (SELECT version, id, NULL::text, NULL::text, NULL::text, NULL::double precision, NULL::text,         NULL::timestamptz  FROM water.audits_deletions AS gone  WHERE account_id = $1 AND (version, id) > ($2, $3) AND version <= $4 AND NOT EXISTS (    SELECT FROM water.audits AS record    WHERE record.account_id = gone.account_id AND record.id = gone.id)  ORDER BY version, id LIMIT $5) ORDER BY version, id LIMIT $5;
EXECUTE changes_of_audits ('acme', 0, '', 9, 5);

PREPARE sources AS SELECT dataset, source, source_url, licence, as_of, loaded_at, synthetic, derived_levels, records, CASE dataset WHEN 'vigieau' THEN ARRAY(SELECT dept FROM water.kept_levels ORDER BY dept) ELSE '{}' END AS kept_levels FROM (SELECT dataset, source, source_url, licence, as_of, loaded_at, synthetic, derived_levels, records FROM water.sources WHERE dataset IN ('stress', 'risk', 'vigieau') UNION ALL SELECT 'analyses', source, source_url, licence, as_of, loaded_at, synthetic, '{}', total FROM water.analyses_accounts WHERE account_id = $1 AND total > 0 AND loaded_at IS NOT NULL UNION ALL SELECT 'audits', source, source_url, licence, as_of, loaded_at, synthetic, '{}', total FROM water.audits_accounts WHERE account_id = $1 AND total > 0 AND loaded_at IS NOT NULL) AS source ORDER BY array_position(ARRAY['stress', 'risk', 'vigieau', 'analyses', 'audits'], dataset);
EXECUTE sources ('acme');
