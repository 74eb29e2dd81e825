//! What the dialog of a new key does while the key is on its way, and when the session ends in between.
import type { Page, Route } from '@playwright/test';
import type { Key } from '../src/api';
import { fr } from '../src/words/fr';
import { curl, kubectl, person } from './cluster';
import { dialog, expect, freshTitle, newText, openKeys, revokeKey, row, shownText, test } from './site';

const PATH = '/api/v1/stress?dept=34';
const LIST = '**/account/v1/accounts/acme/keys';
const words = fr.keys;

/** The dialog with the text of a key that the portal does not know yet; answers the text. */
async function openText(page: Page, title: string): Promise<string> {
  await openKeys(page, 'acme');
  return newText(page, title);
}

/** Says "I have saved it", with these answers in place of the list from then on. */
async function saveWithout(page: Page, list: (created: Key, route: Route) => Promise<void>): Promise<void> {
  let created: Key | undefined;
  page.on('response', async (answer) => {
    if (answer.request().method() === 'POST' && answer.status() === 201) created = (await answer.json()) as Key;
  });
  await page.route(LIST, async (route) => {
    if (route.request().method() !== 'GET') return route.continue();
    await expect.poll(() => created).toBeDefined();
    return list(created as Key, route);
  });
  await dialog(page).getByRole('button', { name: words.saved }).click();
}

async function finish(page: Page, title: string, key: string): Promise<void> {
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await dialog(page).getByRole('button', { name: fr.close }).click();
  expect((await curl(key, PATH)).status).toBe(200);
  await expect(row(page, title)).toHaveCount(1);
  await revokeKey(page, title);
}

/** Forgets the session in this browser, as when it has ended; the identity provider still knows its person. */
async function loseSession(page: Page): Promise<void> {
  await page.context().clearCookies({ name: '__Host-water_session' });
}

/** Follows the dialog's link to sign in, in another tab. */
async function signInElsewhere(page: Page): Promise<void> {
  await expect(dialog(page).getByRole('alert')).toContainText(words.signInThenRetry);
  const opened = page.context().waitForEvent('page');
  await dialog(page).getByRole('link', { name: words.signInElsewhere }).click();
  const tab = await opened;
  await expect(tab.getByRole('heading', { level: 1, name: fr.docs.title })).toBeVisible();
  await tab.close();
}

test('a dialog that waits says how many gates it waits for', async ({ site }) => {
  const page = await site.as(person('acme'));
  const title = freshTitle();
  const key = await openText(page, title);
  await saveWithout(page, (created, route) => {
    const waiting: Key = { ...created, state: 'publishing', reason: 'awaiting_gates', waitingGates: 2 };
    return route.fulfill({ json: { count: 1, data: [waiting] } });
  });
  await expect(dialog(page)).toContainText(words.waitingGates(2));
  await page.unrouteAll({ behavior: 'wait' });
  await finish(page, title, key);
});

test('a dialog that waits says that the list is away, and goes on when it is back', async ({ site }) => {
  site.provokes(/status of 503/);
  const page = await site.as(person('acme'));
  const title = freshTitle();
  const key = await openText(page, title);
  await saveWithout(page, (_, route) => route.fulfill({ status: 503, json: { code: 'dependency_unavailable' } }));
  await expect(dialog(page)).toContainText(fr.problems.dependency_unavailable);
  await page.unrouteAll({ behavior: 'wait' });
  await finish(page, title, key);
});

/** Refuses keys of this title by a policy of the platform, and waits until it acts; answers its objects. */
async function refuseTitle(title: string): Promise<string> {
  const name = `refuses-${Date.now().toString(36)}`;
  const rule = { apiGroups: ['waterdata.dev'], apiVersions: ['*'], operations: ['CREATE'], resources: ['apikeys'] };
  const validations = [{ expression: `object.spec.?description.orValue('') != '${title}'`, message: 'no such title' }];
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const metadata = { name };
  const items = [
    { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec: { matchConstraints: { resourceRules: [rule] }, validations } },
    { apiVersion, kind: 'ValidatingAdmissionPolicyBinding', metadata, spec: { policyName: name, validationActions: ['Deny'] } },
  ];
  const objects = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await kubectl(['apply', '-f', '-'], objects);
  const spec = { accountId: 'acme', plan: 'Enterprise', description: title };
  const key = JSON.stringify({ apiVersion: 'waterdata.dev/v1', kind: 'ApiKey', metadata: { name }, spec });
  const tried = () => kubectl(['create', '--dry-run=server', '-f', '-'], key).catch(String);
  await expect.poll(tried, { timeout: 60_000 }).toContain('no such title');
  return objects;
}

test('a key that a rule of the platform refuses is told in the words of the page’s language, with whom to ask', async ({ site }) => {
  site.provokes(/status of 409/);
  const page = await site.as(person('acme'));
  const title = freshTitle();
  await openText(page, title);
  const objects = await refuseTitle(title);
  await dialog(page).getByRole('button', { name: words.saved }).click();
  await expect(dialog(page)).toContainText('Une règle de la plateforme');
  await expect(dialog(page)).toContainText(fr.requestId(''));
  await kubectl(['delete', '-f', '-'], objects);
});

test('a session that has ended before "I have saved it" is begun in another tab, and a retry makes exactly one key', async ({ site }) => {
  site.provokes(/status of 401/);
  const page = await site.as(person('acme'));
  const title = freshTitle();
  const key = await openText(page, title);
  await loseSession(page);
  await dialog(page).getByRole('button', { name: words.saved }).click();
  await signInElsewhere(page);
  expect(await shownText(page)).toBe(key);
  await dialog(page).getByRole('button', { name: words.retry }).click();
  await finish(page, title, key);
});

test('a session that ends while the dialog waits is told, and a retry finds the one key that was made', async ({ site }) => {
  site.provokes(/status of 401/);
  const page = await site.as(person('acme'));
  const title = freshTitle();
  const key = await openText(page, title);
  await saveWithout(page, (created, route) => route.fulfill({ json: { count: 1, data: [{ ...created, state: 'publishing' }] } }));
  await expect(dialog(page)).toContainText(words.publishing);
  await loseSession(page);
  await page.unrouteAll({ behavior: 'wait' });
  await signInElsewhere(page);
  await dialog(page).getByRole('button', { name: words.retry }).click();
  await finish(page, title, key);
});

test('a page that is hidden for good forgets the text, and asks who is signed in when it comes back', async ({ site }) => {
  site.provokes(/status of 401/);
  const page = await site.as(person('acme'));
  const key = await openText(page, freshTitle());
  // Playwright turns the back-forward cache off: the events are those that it would cause.
  const happen = (event: 'pagehide' | 'pageshow') => page.evaluate((name) => window.dispatchEvent(new PageTransitionEvent(name, { persisted: true })), event);
  await happen('pagehide');
  await expect(dialog(page)).toHaveCount(0);
  expect(await page.content()).not.toContain(key.slice(20));
  const asked = page.waitForRequest((request) => request.url().endsWith('/account/v1/session'));
  await happen('pageshow');
  await asked;
  await loseSession(page);
  await happen('pageshow');
  await expect(page.locator('main a[href^="/auth/sign-in"]')).toBeVisible();
  await expect(page.locator('tr[data-key]')).toHaveCount(0);
});
