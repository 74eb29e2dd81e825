//! An account holder makes, uses, replaces and revokes keys, and nobody else does.
import { readFileSync } from 'node:fs';
import { anna, bruno, kubectl, removeKeys, statusWith } from './cluster';
import { confirm, keysOf, makeKey, makeReplacement, makeText, publish, revoke, row } from './keys_page';
import { ask, expect, test } from './reader';

const KEYS = '/a/acme/settings/api';

test.beforeEach(removeKeys);

test('a holder makes a key, uses it, sees its use and revokes it', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const usage = '/account/v1/accounts/acme/usage?days=1';
  const accepted = async () => (await ask(page, usage)).json.data.at(-1).accepted;
  const before = await accepted();
  const text = await makeText(page, 'by hand');
  expect(statusWith(text), 'a text that was not saved').toBe(401);
  await publish(page);
  expect(statusWith(text)).toBe(200);
  await expect.poll(accepted, { timeout: 30_000 }).toBe(before + 1);
  await expect.poll(async () => (await ask(page, '/account/v1/accounts/acme/keys')).json.data[0].lastUsedAt, { timeout: 30_000 }).not.toBeNull();
  await page.reload();
  await expect(row(page, 'by hand')).not.toContainText('never');
  await revoke(page, 'by hand');
  expect(statusWith(text)).toBe(401);
});

test('a revoked key gets 401 within a second', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const text = await makeKey(page, 'soon gone');
  await row(page, 'soon gone').getByRole('button', { name: 'Revoke' }).click();
  const answered = page.waitForResponse((answer) => answer.request().method() === 'DELETE');
  await confirm(page, 'Revoke');
  expect((await answered).status()).toBe(202);
  await expect.poll(() => statusWith(text), { timeout: 1_000, intervals: [50] }).toBe(401);
});

test('a replaced key works on through its overlap, until its holder ends it', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const old = await makeKey(page, 'turning');
  const fresh = await makeReplacement(page, 'turning', 'h1');
  expect(statusWith(fresh)).toBe(401);
  await publish(page);
  expect([statusWith(old), statusWith(fresh)]).toEqual([200, 200]);
  await row(page, 'turning').getByRole('button', { name: 'End it now' }).click();
  await confirm(page, 'End it now');
  await expect(row(page, 'turning')).not.toContainText('The old key');
  expect([statusWith(old), statusWith(fresh)]).toEqual([401, 200]);
});

test('a tab that is closed before the text is saved leaves no key', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const text = await makeText(page, 'forgotten');
  const other = await page.context().newPage();
  await page.close();
  await other.goto(KEYS);
  expect(await keysOf(other, 'acme')).toEqual([]);
  expect(statusWith(text)).toBe(401);
});

test('of two tabs that replace a key the second is told that it has changed', async ({ reader }) => {
  reader.provokes(409);
  const page = await reader.signIn(anna, KEYS);
  await makeKey(page, 'shared');
  const second = await page.context().newPage();
  await second.goto(KEYS);
  const lost = await makeReplacement(second, 'shared', 'h1');
  await makeReplacement(page, 'shared', 'h1');
  await publish(page);
  await second.locator('dialog[open]').getByRole('button', { name: 'I have saved it' }).click();
  await expect(second.getByRole('alert')).toContainText('has just been changed elsewhere');
  expect(statusWith(lost)).toBe(401);
});

test('a key of the cluster is listed and can be revoked', async ({ reader }) => {
  const manifest = {
    apiVersion: 'waterdata.dev/v1',
    kind: 'ApiKey',
    metadata: { name: 'from-a-manifest' },
    spec: { accountId: 'acme', plan: 'Enterprise', description: 'from a manifest' },
  };
  kubectl(['apply', '--filename', '-'], JSON.stringify(manifest));
  kubectl(['wait', '--for=condition=Ready', 'apikey/from-a-manifest']);
  const page = await reader.signIn(anna, KEYS);
  const listed = row(page, 'from a manifest');
  await expect(listed).toContainText('made by the platform');
  await expect(listed.getByRole('button', { name: 'Replace' })).toHaveCount(0);
  await revoke(page, 'from a manifest');
  expect(kubectl(['get', 'apikeys', '--field-selector', 'spec.accountId=acme', '--output=name'])).toBe('');
});

test('a key is renamed', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const text = await makeKey(page, 'before');
  await row(page, 'before').getByRole('button', { name: 'Rename' }).click();
  await page.locator('dialog[open]').getByLabel('Name').fill('after');
  await confirm(page, 'Save');
  await expect(row(page, 'after')).toBeVisible();
  expect(statusWith(text)).toBe(200);
});

test('a saved file holds the text', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const text = await makeText(page, 'saved');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save to a file' }).click();
  const file = await download;
  expect(readFileSync(await file.path(), 'utf8')).toBe(`${text}\n`);
  await file.delete();
});

test('a quota falls by one with each request', async ({ reader }) => {
  const page = await reader.signIn(bruno, '/a/globex/settings/api');
  const text = await makeKey(page, 'counted');
  const left = async () => (await ask(page, '/account/v1/accounts/globex/quota')).json.day.remaining;
  const before = await left();
  for (const used of [1, 2, 3]) {
    expect(statusWith(text)).toBe(200);
    expect(await left()).toBe(before - used);
  }
});

test('a short expiry that was asked for through the API ends the key', async ({ reader }) => {
  const page = await reader.signIn(anna, KEYS);
  const text = await makeText(page, 'short');
  await page.route('**/account/v1/accounts/acme/keys', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    const body = { ...route.request().postDataJSON(), expiresAt: new Date(Date.now() + 6_000).toISOString() };
    return route.continue({ postData: JSON.stringify(body) });
  });
  await publish(page);
  expect(statusWith(text)).toBe(200);
  await expect.poll(() => statusWith(text), { timeout: 15_000 }).toBe(401);
});
