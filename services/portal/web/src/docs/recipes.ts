//! Requests with curl, ready to paste. Each is run as it stands by a test.
import type { Words } from '../words/fr';

/** `pandas`: how to read the table that the recipe writes. */
export type Recipe = { name: keyof Words['docs']['recipe']; text: string; pandas?: string };

const AUTH = '-H "Authorization: Bearer $WATER_KEY"';
/** Without it pandas takes codes of départements for numbers; it passes over a column that a table does not have. */
const CODES = 'dtype={"dept": str, "deptCode": str}';

/** The recipes for this origin. */
export function recipes(origin: string): Recipe[] {
  const get = (path: string, more = '') => `curl -sS --fail-with-body ${AUTH} ${more}"${origin}${path}"`;
  return [
    { name: 'one', text: get('/api/v1/stress?dept=34') },
    { name: 'all', text: get('/api/v1/risque') },
    { name: 'csv', text: get('/api/v1/stress', '-H "Accept: text/csv" '), pandas: `read_csv(…, ${CODES})` },
    { name: 'page', text: get('/api/v1/hydrorisk?limit=100&offset=0') },
    {
      name: 'walk',
      text: [
        `next="/api/v1/hydrorisk?limit=5000"`,
        `while [ -n "$next" ]; do`,
        // What curl prints of a refusal would be a line of the file; it waits as long as Retry-After says.
        `  curl -sS --fail --retry 9 ${AUTH} \\`,
        `    -H "Accept: application/x-ndjson" -D headers.txt "${origin}$next" || exit 1`,
        `  next=$(sed -n 's/^[Ll]ink:.*<\\([^>]*\\)>; *rel="next".*/\\1/p' headers.txt)`,
        `done > analyses.ndjson`,
      ].join('\n'),
      pandas: `read_json("analyses.ndjson", lines=True, ${CODES})`,
    },
    {
      name: 'etag',
      text: [`curl -sS --fail-with-body ${AUTH} --etag-save stress.etag --etag-compare stress.etag \\`, `  -o stress.json "${origin}/api/v1/stress"`].join('\n'),
    },
    { name: 'limits', text: `${get('/api/v1/stress?dept=75', '-o /dev/null -D - ')} | grep -i "^ratelimit"` },
    { name: 'sources', text: get('/api/v1/sources') },
  ];
}
