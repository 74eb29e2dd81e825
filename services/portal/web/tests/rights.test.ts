//! Who may see and do what: accounts, roles, plans, and the ends of sessions.
import { anna, bruno, chloe, cluster, removeKeys } from './cluster';
import { makeKey, row } from './keys_page';
import { ask, expect, test, typeName } from './reader';

const NEW_KEY = { title: 'x', sha256: '0'.repeat(64), keyId: 'abcdefghijkl', expiresAt: null };

test('somebody who is not signed in is brought back to the page that they asked for', async ({ reader }) => {
  const page = await reader.visit('/a/acme/history');
  await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
  await typeName(page, anna);
  await expect(page).toHaveURL(`${cluster.portal}/a/acme/history`);
});

test('a wrong password opens no session', async ({ reader }) => {
  reader.provokes(401);
  const page = await reader.visit('/');
  await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
  await page.locator('input[name=login]').fill(anna.email);
  await page.locator('input[name=password]').fill('wrong');
  await page.locator('button[type=submit]').click();
  await expect(page.locator('input[name=password]')).toBeVisible();
  await page.goto(cluster.portal);
  expect((await ask(page, '/account/v1/session')).json.signedIn).toBe(false);
});

test('a free account is told why it has no keys', async ({ reader }) => {
  reader.provokes(403);
  const page = await reader.signIn(chloe, '/a/initech/settings/api');
  await expect(page.getByRole('main')).toContainText('The Free plan has no access to the API');
  await expect(page.getByRole('button', { name: 'Create a key' })).toHaveCount(0);
  const refused = await ask(page, '/account/v1/accounts/initech/keys', 'POST', NEW_KEY);
  expect([refused.status, refused.json.code]).toEqual([403, 'plan_insufficient']);
  expect((await ask(page, '/account/v1/accounts/initech/stress')).status).toBe(403);
});

test('a viewer looks and changes nothing', async ({ reader }) => {
  reader.provokes(403);
  removeKeys();
  const holder = await reader.signIn(bruno, '/a/globex/settings/api');
  await makeKey(holder, 'looked at');
  const page = await reader.signIn(anna, '/a/globex/settings/api');
  const listed = row(page, 'looked at');
  await expect(listed).toBeVisible();
  await expect(listed.getByRole('button')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Create a key' })).toHaveCount(0);
  const keys = '/account/v1/accounts/globex/keys';
  const [key] = (await ask(page, keys)).json.data;
  for (const [path, method, body] of [
    [keys, 'POST', NEW_KEY],
    [`${keys}/${key.name}`, 'PATCH', { title: 'x' }],
    [`${keys}/${key.name}`, 'DELETE', undefined],
  ] as const) {
    const refused = await ask(page, path, method, body);
    expect([method, refused.status, refused.json.code]).toEqual([method, 403, 'read_only']);
  }
});

test("another account's address shows nothing", async ({ reader }) => {
  reader.provokes(404);
  const page = await reader.signIn(bruno);
  for (const section of ['map', 'history', 'settings/api']) {
    await page.goto(`/a/acme/${section}`);
    await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
  }
  const answers = [];
  for (const account of ['acme', 'nobody']) {
    for (const resource of ['keys', 'keys/x', 'quota', 'usage', 'stress', 'hydrorisk']) {
      const { status, json } = await ask(page, `/account/v1/accounts/${account}/${resource}`);
      answers.push(JSON.stringify([status, { ...json, requestId: '' }]));
    }
  }
  expect(new Set(answers).size, answers.join('\n')).toBe(1);
});

test('another site changes nothing', async ({ reader }) => {
  reader.provokes(403);
  // The provider has no picture for a tab.
  reader.provokes(404);
  const page = await reader.signIn(anna);
  const cookies = await page.context().cookies(cluster.portal);
  const session = cookies.find(({ name }) => name === '__Host-water_session');
  expect(session).toMatchObject({ secure: true, httpOnly: true, sameSite: 'Lax', path: '/' });
  await page.goto(`${cluster.issuer}/.well-known/openid-configuration`);
  await page.evaluate((url) => {
    const form = document.createElement('form');
    Object.assign(form, { method: 'post', action: url });
    document.body.append(form);
    form.submit();
  }, `${cluster.portal}/auth/sign-out`);
  await page.waitForURL(`${cluster.portal}/auth/sign-out`);
  await expect(page.locator('body')).toContainText('cross_origin');
  await page.goto(cluster.portal);
  expect((await ask(page, '/account/v1/session')).json.signedIn).toBe(true);
});

test('signing out ends the session in another window', async ({ reader }) => {
  reader.provokes(401);
  const page = await reader.signIn(anna, '/a/acme/settings/api');
  const other = await page.context().newPage();
  await other.goto('/a/acme/settings/api');
  await page.getByRole('banner').locator('summary').click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('main').getByRole('link', { name: 'Sign in' })).toBeVisible();
  expect((await ask(other, '/account/v1/accounts/acme/keys')).status).toBe(401);
});

test('signing out at the provider ends the session here', async ({ reader }) => {
  reader.provokes(401);
  const page = await reader.signIn(anna, '/a/acme/settings/api');
  const provider = await page.context().newPage();
  await provider.goto(`${cluster.issuer}/logout`);
  await provider.getByRole('button').first().click();
  await expect.poll(async () => (await ask(page, '/account/v1/accounts/acme/keys')).status).toBe(401);
});
