//! A walk through a history ends even if its database stays too slow.
import { expect, test } from '@playwright/test';
import { walk } from '../src/history/pages';

test('a page is asked for with fewer rows each time that it is refused, and given up in the end', async () => {
  const asked: string[] = [];
  // The pause is as long as the answer says: a millisecond.
  const refused = () => Response.json({ code: 'dependency_unavailable' }, { status: 503, headers: { 'Retry-After': '0.001' } });
  const link = '</api/v1/hydrorisk?limit=2500&cursor=next>; rel="next"';
  const fetched = globalThis.fetch;
  globalThis.fetch = (path: unknown) => {
    asked.push(/limit=(\d+(&cursor=next)?)/.exec(String(path))?.[1] ?? '');
    return Promise.resolve(asked.length === 3 ? new Response('', { headers: { Link: link } }) : refused());
  };
  try {
    const walked = walk('acme', 'analyses', new AbortController().signal, () => {});
    await expect(walked).rejects.toMatchObject({ status: 503, code: 'dependency_unavailable' });
  } finally {
    globalThis.fetch = fetched;
  }
  const second = [2500, 2500, 1250, 625, 500, 500].map((limit) => `${limit}&cursor=next`);
  expect(asked.slice(0, 9)).toEqual(['5000', '5000', '2500', ...second]);
  // A page in between begins the count again.
  expect(asked.length).toBe(103);
});
