//! What a page asks by itself is no sign of its reader: it must not keep a session alive.
import { createHash } from 'node:crypto';
import type { Page, Request } from '@playwright/test';
import { fr } from '../src/words/fr';
import { person, redis } from './cluster';
import { dialog, expect, freshTitle, newText, openKeys, revokeKey, test } from './site';

/** The name in Redis of the browser's session, which ends there for being idle. */
async function session(page: Page): Promise<string> {
  const cookie = (await page.context().cookies()).find(({ name }) => name === '__Host-water_session');
  const hash = createHash('sha256').update(Uint8Array.from(Buffer.from(cookie?.value ?? '', 'base64url'))).digest('hex');
  const name = (await redis('KEYS', `wd:web:{${hash}}:*:s`)).trim();
  expect(name).not.toBe('');
  return name;
}

/** The account's resources that are read from now on, as they are. */
function reads(page: Page): Request[] {
  const seen: Request[] = [];
  page.on('request', (request) => request.method() === 'GET' && request.url().includes('/account/v1/accounts/') && seen.push(request));
  return seen;
}

const polls = (of: Request[], resource: RegExp) => of.filter((one) => resource.test(one.url()) && one.headers()['x-poll'] === '1');

test('a keys page that is only looked at does not put off the end of its session', async ({ site }) => {
  const page = await site.as(person('acme'));
  // What a page asks when it is opened is its reader's: none of that may be under way any more.
  const parts = ['keys', 'quota', 'usage'].map((part) => page.waitForResponse((answer) => answer.url().includes(`/accounts/acme/${part}`)));
  await openKeys(page, 'acme');
  await Promise.all(parts);
  const seen = reads(page);
  const name = await session(page);
  // Whatever puts it off makes it longer than these minutes.
  await redis('PEXPIRE', name, '300000');
  await expect.poll(() => polls(seen, /\/usage/).length).toBeGreaterThan(0);
  await expect.poll(() => polls(seen, /\/quota/).length).toBeGreaterThan(0);
  expect(polls(seen, /./)).toEqual(seen);
  const left = async () => Number(await redis('PTTL', name));
  expect(await left()).toBeLessThanOrEqual(300_000);
  await page.reload();
  await expect.poll(left).toBeGreaterThan(300_000);
});

test('waiting until a key works at every gate does not put it off either', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  await newText(page, title);
  const seen = reads(page);
  await dialog(page).getByRole('button', { name: fr.keys.saved }).click();
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  const looks = seen.filter((one) => one.url().endsWith('/keys'));
  expect(looks.length).toBeGreaterThan(0);
  expect(polls(looks, /./)).toEqual(looks);
  await dialog(page).getByRole('button', { name: fr.close }).click();
  await revokeKey(page, title);
});
