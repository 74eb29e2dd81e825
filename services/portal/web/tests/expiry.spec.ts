//! When keys end: what the form offers within the portal's bound, and that an end is kept.
import { createHash, randomBytes } from 'node:crypto';
import type { Page } from '@playwright/test';
import type { Key } from '../src/api';
import { compose } from '../src/key';
import { fr } from '../src/words/fr';
import { curl, kubectl, person } from './cluster';
import { dialog, expect, freshTitle, makeKey, openForm, openKeys, revokeKey, row, shownText, test } from './site';

const PATH = '/api/v1/stress?dept=34';
const DAY = 86_400_000;
const words = fr.keys;

type Told = { keyPrefix: string; accounts: { maxKeyDays?: number | null }[] };

async function session(page: Page): Promise<Told> {
  return page.evaluate(async () => (await (await fetch('/account/v1/session')).json()) as Told);
}

/** The keys' page as under a portal that lets keys live so many days. */
async function openBounded(page: Page, maxKeyDays: number | null): Promise<void> {
  await page.goto('/docs');
  const told = await session(page);
  for (const account of told.accounts) account.maxKeyDays = maxKeyDays;
  await page.route('**/account/v1/session', (route) => route.fulfill({ json: told }));
  await openKeys(page, 'acme');
}

const offered = (page: Page) => dialog(page).getByLabel(words.expiryLabel, { exact: true }).locator('option').allInnerTexts();
const chosen = (page: Page) => dialog(page).getByLabel(words.expiryLabel, { exact: true }).locator('option:checked').innerText();
const isoDay = (at: number) => new Date(at).toLocaleDateString('sv');

test('without a bound a key lives a year unless its holder says otherwise, and under one the form that replaces it offers what the portal takes', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openBounded(page, null);
  const title = freshTitle();
  await openForm(page, title);
  expect(await offered(page)).toEqual([words.expiry.d30, words.expiry.d90, words.expiry.d365, words.expiry.never, words.expiry.date]);
  expect(await chosen(page)).toBe(words.expiry.d365);
  await page.keyboard.press('Escape');
  await makeKey(page, title);
  await openBounded(page, 30);
  await row(page, title).getByRole('button', { name: words.rotateLabel(title) }).click();
  expect(await offered(page)).toEqual([words.expiry.d30, words.expiry.date]);
  await page.keyboard.press('Escape');
  await revokeKey(page, title);
});

test('under a bound of 90 days the form offers what the portal takes, the longest first', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openBounded(page, 90);
  const title = freshTitle();
  await openForm(page, title);
  expect(await offered(page)).toEqual([words.expiry.d30, words.expiry.d90, words.expiry.date]);
  expect(await chosen(page)).toBe(words.expiry.d90);
  await expect(dialog(page)).toContainText(words.expiryBound(90));
  const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/keys'));
  await dialog(page).getByRole('button', { name: words.make }).click();
  await dialog(page).getByRole('button', { name: words.saved }).click();
  const left = Date.parse((JSON.parse((await sent).postData() ?? '') as { expiresAt: string }).expiresAt) - Date.now();
  expect(left).toBeLessThan(90 * DAY);
  expect(left).toBeGreaterThan(89.9 * DAY);
  await dialog(page).getByRole('button', { name: fr.close }).click();
  await revokeKey(page, title);
});

test('under a bound of 7 days a date is asked for, and one beyond it makes no key', async ({ site }) => {
  const page = await site.as(person('acme'));
  // On the page's clock it stays noon: dates are the reader's own, and none of them changes while the test runs.
  const noon = new Date().setHours(12, 0, 0, 0);
  await page.addInitScript((at) => {
    Date.now = () => at;
  }, noon);
  await openBounded(page, 7);
  await openForm(page, freshTitle());
  expect(await offered(page)).toEqual([words.expiry.date]);
  const date = dialog(page).getByLabel(words.expiryDate);
  await expect(date).toHaveValue(isoDay(noon + 7 * DAY - 600_000));
  await date.fill(isoDay(noon + 9 * DAY));
  await dialog(page).getByRole('button', { name: words.make }).click();
  await expect(dialog(page).getByRole('alert')).toHaveText(words.expiryBeyond);
  await date.fill(isoDay(noon - DAY));
  await expect(dialog(page).getByRole('alert')).toHaveText(words.expiryWrong);
  await date.fill(isoDay(noon + DAY));
  await dialog(page).getByRole('button', { name: words.make }).click();
  await shownText(page);
});

test('a key that ends in a few seconds is answered 401 then, and is listed as expired', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const { text, keyId, sha256 } = await compose(Uint8Array.from(randomBytes(48)), (await session(page)).keyPrefix);
  expect(sha256).toBe(createHash('sha256').update(text).digest('hex'));
  const body = { title, keyId, sha256, expiresAt: new Date(Date.now() + DAY).toISOString() };
  const { status, made } = await page.evaluate(async (of) => {
    const answer = await fetch('/account/v1/accounts/acme/keys', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(of) });
    return { status: answer.status, made: (await answer.json()) as Key };
  }, body);
  expect(status).toBe(201);
  expect(Date.parse(made.expiresAt ?? '')).toBe(Date.parse(body.expiresAt));
  await expect.poll(async () => (await curl(text, PATH)).status).toBe(200);
  // A key that is made with so near an end may meet it before it is asked for the first time.
  const end = Date.now() + 5000;
  const change = { spec: { expirationTime: new Date(end).toISOString() } };
  await kubectl(['patch', 'apikey', made.name, '--type=merge', '-p', JSON.stringify(change)]);
  // Seldom enough for the account's 120 requests a minute, of which other tests need some.
  await expect.poll(async () => (await curl(text, PATH)).status, { intervals: [500] }).toBe(401);
  expect(Date.now()).toBeGreaterThan(end - 1000);
  await expect(async () => {
    await openKeys(page, 'acme');
    await expect(row(page, title)).toHaveAttribute('data-state', 'expired', { timeout: 2000 });
  }).toPass();
  await revokeKey(page, title);
});
