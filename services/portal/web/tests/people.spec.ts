//! Who sees what: plans, roles, other accounts, and the end of sessions.
import { fr } from '../src/words/fr';
import { person, setting } from './cluster';
import { expect, fillProvidersForm, openKeys, test } from './site';

test('a holder on the Free plan is told what Enterprise opens, and has no button to create a key', async ({ site }) => {
  const page = await site.as(person('initech'));
  await openKeys(page, 'initech');
  await expect(page.getByText(fr.noAccess.title('Free'))).toBeVisible();
  await expect(page.getByRole('button', { name: fr.keys.create })).toHaveCount(0);
  await page.goto('/a/initech/map');
  await expect(page.getByText(fr.noAccess.title('Free'))).toBeVisible();
  await expect(page.locator('[data-code]')).toHaveCount(0);
});

test('a viewer sees the keys and has no button to change them', async ({ site }) => {
  const page = await site.as(person('globex', 'viewer'));
  await openKeys(page, 'globex');
  await expect(page.getByText(fr.keys.viewer)).toBeVisible();
  await expect(page.locator('tr[data-key], .empty').first()).toBeVisible();
  await expect(page.getByRole('button', { name: fr.keys.create })).toHaveCount(0);
  await expect(page.locator('tr[data-key] button')).toHaveCount(0);
});

test('another account’s address shows what an unknown one shows', async ({ site }) => {
  const page = await site.as(person('globex'));
  const seen: string[] = [];
  for (const account of ['acme', 'nobody']) {
    await page.goto(`/a/${account}/settings/api`);
    await expect(page.getByRole('heading', { level: 1, name: fr.notFound.title })).toBeVisible();
    seen.push(await page.locator('main').innerText());
  }
  expect(seen[0]).toBe(seen[1]);
});

test('a page that needs a session leads through sign-in and back to itself', async ({ site }) => {
  const page = await site.browser();
  await page.goto('/a/acme/history');
  await expect(page.getByRole('heading', { level: 1, name: fr.signInNeeded })).toBeVisible();
  await page.locator('main a[href^="/auth/sign-in"]').click();
  await fillProvidersForm(page, person('acme'));
  await page.waitForURL(`${setting('WATER_PORTAL_URL')}/a/acme/history`);
  await expect(page.getByRole('heading', { level: 1, name: fr.history.title })).toBeVisible();
});

test('a wrong password opens no session', async ({ site }) => {
  const page = await site.browser();
  await page.goto('/');
  await page.locator('main a[href^="/auth/sign-in"]').click();
  // The form looks the same before the provider has refused.
  const refused = page.waitForResponse((answer) => answer.request().method() === 'POST');
  await fillProvidersForm(page, { ...person('acme'), password: 'not the password' });
  await refused;
  await expect(page.locator('input[name=password]')).toBeVisible();
  await page.goto('/');
  await expect(page.getByRole('heading', { level: 1, name: fr.home.title.replace('\u00a0', ' ') })).toBeVisible();
});

test('signing out ends the session in another window', async ({ site }) => {
  site.provokes(/status of 401/);
  const page = await site.signedIn(person('acme'));
  const other = await page.context().newPage();
  await openKeys(other, 'acme');
  await page.locator('.menu > summary').click();
  await page.getByRole('button', { name: fr.signOut }).click();
  await page.waitForURL((address) => !address.pathname.startsWith('/a/'));
  // The other window asks for the quota every five seconds, and so it learns.
  await other.bringToFront();
  await expect(other.getByRole('heading', { level: 1, name: fr.sessionEnded })).toBeVisible();
  await expect(other.locator('tr[data-key]')).toHaveCount(0);
});

test('signing out in one browser ends, by the back channel, the session that the same sign-in opened in another', async ({ site }) => {
  site.provokes(/status of 401/);
  const holder = person('acme');
  const first = await site.signedIn(holder);
  const second = await site.browser();
  // The second browser is known to the provider, not to the portal: its session is its own.
  const issuer = new URL(setting('WATER_OIDC_ISSUER'));
  const known = (await first.context().cookies()).filter((cookie) => cookie.domain === issuer.hostname);
  expect(known.length).toBeGreaterThan(0);
  await second.context().addCookies(known);
  await second.goto('/');
  await second.locator('main a[href^="/auth/sign-in"]').click();
  await second.waitForURL((address) => address.origin === setting('WATER_PORTAL_URL'));
  await openKeys(second, 'acme');
  await first.locator('.menu > summary').click();
  await first.getByRole('button', { name: fr.signOut }).click();
  await first.waitForURL((address) => !address.pathname.startsWith('/a/'));
  await expect(second.getByRole('heading', { level: 1, name: fr.sessionEnded })).toBeVisible();
});

test('scripts cannot read the session’s cookie', async ({ site }) => {
  const page = await site.as(person('acme'));
  await page.goto('/docs');
  expect(await page.evaluate(() => document.cookie)).toBe('');
  const cookie = (await page.context().cookies()).find(({ name }) => name === '__Host-water_session');
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', path: '/' });
});
