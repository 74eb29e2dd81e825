-- What the services of schema version 1 ask, word for word, with their parameters.

PREPARE ready AS SELECT FROM water.datasets LIMIT 1;
EXECUTE ready;

PREPARE versions AS
SELECT name, version, updated_at FROM water.datasets WHERE name IN ('stress', 'risk');
EXECUTE versions;

PREPARE stress AS SELECT dept, stress_index, level FROM water.stress ORDER BY dept;
EXECUTE stress;

PREPARE risk AS SELECT dept, flood, drought, overall, rating, updated_at FROM water.risk ORDER BY dept;
EXECUTE risk;

PREPARE analyses AS
SELECT account.total, page.* FROM water.analyses_accounts AS account LEFT JOIN LATERAL (  SELECT ordinal, created_at, id FROM water.analyses_anchors   WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1) AS anchor ON true LEFT JOIN LATERAL (  SELECT id, company_name, sector_code, dept_code, score, rating, created_at   FROM water.analyses AS record   WHERE record.account_id = $1 AND (record.created_at, record.id)     <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, ''))   ORDER BY record.created_at DESC, record.id DESC   LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)) AS page ON $3 < account.total WHERE account.account_id = $1 ORDER BY page.created_at DESC, page.id DESC;
EXECUTE analyses ('acme', 20, 0);
EXECUTE analyses ('acme', 20, 90);

PREPARE audits AS
SELECT account.total, page.* FROM water.audits_accounts AS account LEFT JOIN LATERAL (  SELECT ordinal, created_at, id FROM water.audits_anchors   WHERE account_id = $1 AND ordinal >= account.total - 1 - $3 ORDER BY ordinal LIMIT 1) AS anchor ON true LEFT JOIN LATERAL (  SELECT id, company_name, sector_code, dept_code, score, rating, created_at   FROM water.audits AS record   WHERE record.account_id = $1 AND (record.created_at, record.id)     <= (coalesce(anchor.created_at, 'infinity'), coalesce(anchor.id, ''))   ORDER BY record.created_at DESC, record.id DESC   LIMIT $2 OFFSET coalesce(anchor.ordinal - (account.total - 1 - $3), $3)) AS page ON $3 < account.total WHERE account.account_id = $1 ORDER BY page.created_at DESC, page.id DESC;
EXECUTE audits ('acme', 20, 0);
EXECUTE audits ('acme', 20, 90);
