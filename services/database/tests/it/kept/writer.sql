-- What the loader of the version before asks and writes in the tables that this version changes, word for word, in a load
-- of the register as of 6 January 2026, after it refused another answer.

BEGIN;

PREPARE legal AS SELECT dept, level, as_of, synthetic, register FROM water.levels;
EXECUTE legal;

PREPARE stress AS SELECT dept, stress_index, level, level_derived FROM water.stress;
EXECUTE stress;

PREPARE remember AS INSERT INTO water.refused_liftings (levels_sha256, refused_at) VALUES (sha256(convert_to($1, 'UTF8')), clock_timestamp()) ON CONFLICT DO NOTHING;
EXECUTE remember ('34 normal');
EXECUTE remember ('34 normal');

PREPARE refused_at AS SELECT refused_at FROM water.refused_liftings WHERE levels_sha256 = sha256(convert_to($1, 'UTF8')) AND refused_at <= clock_timestamp() - interval '12 hours';
EXECUTE refused_at ('34 normal');

PREPARE write_levels AS INSERT INTO water.levels (dept, level, as_of, synthetic, register) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (dept) DO UPDATE SET level = excluded.level, as_of = excluded.as_of, synthetic = excluded.synthetic, register = excluded.register;
EXECUTE write_levels ('34', 'crise', '2026-01-06', false, true);

PREPARE write_stress AS INSERT INTO water.stress (dept, stress_index, level, level_derived) VALUES ($1, $2, $3, $4) ON CONFLICT (dept) DO UPDATE SET stress_index = excluded.stress_index, level = excluded.level, level_derived = excluded.level_derived;
EXECUTE write_stress ('34', 1, 'crise', false);
EXECUTE write_stress ('93', 1, 'crise', false);

PREPARE forget AS DELETE FROM water.refused_liftings;
EXECUTE forget;

PREPARE confirmed AS UPDATE water.datasets SET as_of = $2 WHERE name = $1 AND as_of IS DISTINCT FROM $2;
EXECUTE confirmed ('vigieau', '2026-01-06');

PREPARE raise AS UPDATE water.datasets SET version = version + 1, updated_at = greatest(updated_at, $2) WHERE name = $1;
EXECUTE raise ('stress', '2026-01-06');

PREPARE note AS INSERT INTO water.loads (dataset, as_of, sha256, source, synthetic, loaded_by, rows, inserted, updated, removed, derived, licence, source_url) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $13, $14 WHERE $12 OR NOT EXISTS ( SELECT FROM (SELECT * FROM water.loads WHERE dataset = $1 ORDER BY id DESC LIMIT 1) AS last WHERE (last.as_of, last.sha256, last.source, last.synthetic, last.licence, last.source_url) IS NOT DISTINCT FROM ($2, $3, $4, $5, $13, $14));
EXECUTE note ('vigieau', '2026-01-06', '\x07', 'a test', false, 'nobody', 1, 1, 1, 0, '{}', true, NULL, NULL);

COMMIT;
