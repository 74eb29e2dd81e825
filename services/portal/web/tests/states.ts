//! The states of the pages in which something is asked, missing, away or plenty: each is narrow and looked at by axe-core.
import type { Page } from '@playwright/test';
import type { Key, KeyState, Session } from '../src/api';
import { en } from '../src/words/en';
import { fr } from '../src/words/fr';
import { REASONS } from '../src/words/reasons';
import { expectClean } from './clean';
import { person } from './cluster';
import type { Appearance } from './looks';
import { dialog, expect, freshTitle, row, test } from './site';

const LONG = 'A name of a hundred characters without a single break: ' + 'x'.repeat(45);
const STATES: KeyState[] = ['publishing', 'active', 'suspended', 'not_yet_valid', 'expired', 'plan_without_access', 'revoking', 'stalled'];
const WHY = [null, 'store_loading', 'plan_unknown', 'account_not_bound', 'key_conflict', 'revoked_in_store', 'api_not_found', 'word_of_tomorrow'];

/** A thousand keys in every state and for every reason. */
function thousand(): Key[] {
  const at = new Date(Date.now() - 3_600_000).toISOString();
  return Array.from({ length: 1000 }, (_, index) => ({
    name: `acme-${String(index).padStart(10, '0')}`,
    title: `${index} ${LONG}`.slice(0, 100),
    keyId: String(index).padStart(12, '0'),
    plan: 'Enterprise',
    state: STATES[index % 8]!,
    reason: WHY[Math.floor(index / 8) % 8]!,
    madeBy: index % 3 === 0 ? 'cluster' : 'portal',
    createdAt: at,
    expiresAt: index % 2 === 0 ? null : at,
    lastUsedAt: index % 5 === 0 ? null : at,
    previous: index % 7 === 0 ? { keyId: '0'.repeat(12), retiresAt: new Date(Date.now() + 3_600_000).toISOString() } : null,
    waitingGates: index % 8 === 0 ? 2 : 0,
  }));
}

const KEYS = '/a/acme/settings/api';

/** Defines a test of each group of states, in one look. */
export function testStates({ lang, scheme }: Appearance): void {
  const w = { fr, en }[lang];
  const look = { lang, scheme, width: 320 } as const;
  const named = `(${lang}, ${scheme}, ${look.width} px)`;

  test(`every dialog about a key is clean ${named}`, async ({ site }) => {
    test.slow();
    const page = await site.as(person('acme'), look);
    const press = (name: string) => dialog(page).getByRole('button', { name, exact: true }).click();
    const publish = async () => {
      await press(w.keys.saved);
      await expect(dialog(page).locator('.state.ok')).toBeVisible();
    };
    await page.goto(KEYS);
    await page.getByRole('button', { name: w.keys.create }).first().click();
    await expectClean(page, 'the form of a new key');
    await dialog(page).getByLabel(w.keys.expiryLabel, { exact: true }).selectOption('date');
    await dialog(page).getByLabel(w.keys.expiryDate).fill('');
    await press(w.keys.make);
    await expect(dialog(page).getByRole('alert')).toHaveCount(2);
    await expectClean(page, 'the form of a new key, refused');
    const title = `${freshTitle()} ${LONG}`.slice(0, 100);
    await dialog(page).getByLabel(w.keys.titleLabel).fill(title);
    await dialog(page).getByLabel(w.keys.expiryLabel, { exact: true }).selectOption('d30');
    await press(w.keys.make);
    await expect(dialog(page).getByTestId('key-text')).toBeVisible();
    await expectClean(page, 'the text of a key');
    await publish();
    await expectClean(page, 'a key that works');
    await press(w.close);

    await row(page, title).getByRole('button', { name: w.keys.renameLabel(title) }).click();
    await expectClean(page, 'another name');
    await press(w.cancel);
    await row(page, title).getByRole('button', { name: w.keys.rotateLabel(title) }).click();
    await expectClean(page, 'a key in the place of another');
    await dialog(page).getByLabel(w.keys.overlapLabel).selectOption('h1');
    await press(w.keys.make);
    await publish();
    await press(w.close);
    await expect(row(page, title).getByRole('button', { name: w.keys.endPreviousLabel(title) })).toBeVisible();
    await expectClean(page, 'a key with one before it');
    await row(page, title).getByRole('button', { name: w.keys.rotateLabel(title) }).click();
    await press(w.keys.make);
    await expect(dialog(page).getByText(w.keys.endPreviousNeeded)).toBeVisible();
    await expectClean(page, 'a key in the place of two');
    await press(w.cancel);
    await row(page, title).getByRole('button', { name: w.keys.endPreviousLabel(title) }).click();
    await expectClean(page, 'the end of the key before');
    await press(w.cancel);
    await row(page, title).getByRole('button', { name: w.keys.revokeLabel(title) }).click();
    await expectClean(page, 'the end of a key');
    await press(w.keys.revoke);
    await expect(row(page, title)).toHaveCount(0);
  });

  test(`what strangers see of a page that needs a session is clean, and a sign-in that failed too ${named}`, async ({ site }) => {
    // That of the page about the sign-in itself.
    site.provokes(/status of 400/);
    const page = await site.browser(look);
    await page.goto(KEYS);
    await expect(page.getByRole('heading', { level: 1, name: w.signInNeeded })).toBeVisible();
    await expectClean(page, 'sign in');
    await page.goto('/auth/callback?state=none&code=none');
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expectClean(page, 'a sign-in that failed');
  });

  test(`pages for those who may not look, or only look, are clean ${named}`, async ({ site }) => {
    const free = await site.as(person('initech'), look);
    for (const name of ['map', 'history', 'settings/api']) {
      await free.goto(`/a/initech/${name}`);
      await expect(free.getByText(w.noAccess.title('Free'))).toBeVisible();
      await expectClean(free, `Free: ${name}`);
    }
    await free.goto('/a/acme/map');
    await expect(free.getByRole('heading', { level: 1, name: w.notFound.title })).toBeVisible();
    await expectClean(free, 'not found');
    const viewer = await site.as(person('globex', 'viewer'), look);
    await viewer.goto('/a/globex/settings/api');
    await expect(viewer.getByText(w.keys.viewer)).toBeVisible();
    await expect(viewer.locator('tr[data-key], .empty').first()).toBeVisible();
    await expectClean(viewer, 'a viewer');
  });

  test(`pages of one who belongs to no account, and of an account without anything, are clean ${named}`, async ({ site }) => {
    const page = await site.as(person('acme'), look);
    await page.route('**/accounts/acme/keys', (route) => route.fulfill({ json: { count: 0, data: [] } }));
    await page.route('**/accounts/acme/usage?*', (route) => route.fulfill({ json: { data: [] } }));
    await page.goto(KEYS);
    await expect(page.getByRole('heading', { level: 2, name: w.keys.emptyTitle })).toBeVisible();
    await expectClean(page, 'no keys');
    await page.route('**/accounts/acme/hydrorisk?*', (route) => route.fulfill({ json: { total: 0, offset: 0, data: [] } }));
    await page.goto('/a/acme/history');
    await expect(page.getByRole('heading', { level: 2, name: w.history.emptyTitle })).toBeVisible();
    await expectClean(page, 'no history');
    const session = await page.evaluate(async () => (await (await fetch('/account/v1/session')).json()) as Session);
    await page.route('**/account/v1/session', (route) => route.fulfill({ json: { ...session, accounts: [] } }));
    await page.goto('/');
    await expect(page.getByRole('heading', { level: 1, name: w.noAccount.title })).toBeVisible();
    await expectClean(page, 'no account');
  });

  test(`pages whose data is away are clean ${named}`, async ({ site }) => {
    site.provokes(/status of 503/);
    const page = await site.as(person('acme'), look);
    const away = { status: 503, headers: { 'Retry-After': '30' }, json: { code: 'dependency_unavailable', requestId: '0123456789abcdef0123456789abcdef' } };
    await page.route('**/account/v1/accounts/**', (route) => route.fulfill(away));
    for (const address of ['/a/acme/map', '/a/acme/history', KEYS, '/sources']) {
      await page.goto(address);
      await expect(page.getByRole('alert').first()).toContainText(w.problems.dependency_unavailable);
      await expectClean(page, `${address} without its data`);
    }
    await page.route('**/account/v1/session', (route) => route.fulfill(away));
    await page.goto(KEYS);
    await expect(page.getByRole('heading', { level: 1, name: w.unavailable })).toBeVisible();
    await expectClean(page, 'no session store');
  });

  test(`what is folded is clean once it is open ${named}`, async ({ site }) => {
    const page = await site.as(person('acme'), look);
    const data = Array.from({ length: 30 }, (_, day) => ({ day: `2026-06-${String(day + 1).padStart(2, '0')}`, accepted: day * 1_234_567, limited: day * 89 }));
    await page.route('**/accounts/acme/usage?*', (route) => route.fulfill({ json: { data } }));
    const places: [string, string][] = [[KEYS, '.more'], ['/docs', '[data-try]'], ['/a/acme/map', '[role=option]']];
    for (const [address, ready] of places) {
      await page.goto(address);
      await expect(page.locator(ready).first()).toBeVisible();
      await page.locator('.menu > summary').click();
      await expectClean(page, `${address} with the menu open`);
      await page.keyboard.press('Escape');
      await openAll(page);
      await expectClean(page, `${address} unfolded`);
    }
  });

  test(`a thousand keys in every state are clean ${named}`, async ({ site }) => {
    test.slow();
    const page = await site.as(person('acme'), look);
    const data = thousand();
    await page.route('**/accounts/acme/keys', (route) => route.fulfill({ json: { count: data.length, data, keysElsewhere: true } }));
    await page.goto(KEYS);
    await expect(page.locator('tr[data-key]')).toHaveCount(100);
    const told = async (state: KeyState, reason: string | null) => {
      const key = data.find((one) => one.state === state && one.reason === reason);
      return page.locator(`tr[data-key="${key?.name}"]`).innerText();
    };
    expect(await told('publishing', 'store_loading')).toContain(REASONS[look.lang].store_unavailable);
    expect(await told('publishing', null)).toContain(REASONS[look.lang].publishing);
    expect(await told('stalled', 'key_conflict')).toContain(REASONS[look.lang].key_conflict);
    expect(await told('stalled', 'word_of_tomorrow')).toContain(REASONS[look.lang].stalled);
    await expectClean(page, 'the first hundred of a thousand keys');
    await page.getByLabel(w.keys.find).fill('999 A name');
    await expect(page.locator('tr[data-key]')).toHaveCount(1);
    await expectClean(page, 'one of a thousand keys');
  });
}

/** Unfolds all that is folded, but the menu. */
async function openAll(page: Page): Promise<void> {
  await page.evaluate(() => document.querySelectorAll<HTMLDetailsElement>('main details').forEach((one) => (one.open = true)));
}
