//! An account holder's keys, from their making to their end, through browser, ingress, operator and gates.
import type { Page } from '@playwright/test';
import { fr } from '../src/words/fr';
import { curl, kubectl, person } from './cluster';
import { exactly } from './gates';
import { closeDialog, dialog, expect, freshTitle, makeKey, newText, nextText, openForm, openKeys, publish, replaceKey, revokeKey, row, shownText, signIn, test } from './site';

const PATH = '/api/v1/stress?dept=34';
const words = fr.keys;

test('§5.5: a holder generates a key in the settings, the API takes it, and its text is nowhere once the dialog is closed', async ({ site }) => {
  const page = await site.profile();
  await signIn(page, person('acme'));
  await openKeys(page, 'acme');
  const sent: string[] = [];
  page.on('request', (request) => sent.push(`${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ''}`));
  const title = freshTitle();
  const key = await makeKey(page, title);
  expect((await curl(key, PATH)).status).toBe(200);
  await expect(row(page, title)).toHaveAttribute('data-state', 'active');
  expect(await page.content()).not.toContain(key.slice(20));
  await page.reload();
  await expect(row(page, title)).toBeVisible();
  expect(await page.content()).not.toContain(key.slice(20));
  expect(sent.some((one) => one.includes('"sha256"'))).toBe(true);
  expect(sent.filter((one) => one.includes(key.slice(20)))).toHaveLength(0);
  await revokeKey(page, title);
});

test('§5.5: the settings list a key, and that it has been used', async ({ site }) => {
  test.slow();
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await makeKey(page, title);
  await expect(row(page, title).getByRole('cell', { name: words.never, exact: true })).toBeVisible();
  expect((await curl(key, PATH)).status).toBe(200);
  await expect
    .poll(
      async () => {
        await openKeys(page, 'acme');
        await expect(row(page, title)).toBeVisible();
        return row(page, title).getByRole('cell', { name: words.never, exact: true }).count();
      },
      { timeout: 90_000, intervals: [3000] },
    )
    .toBe(0);
  await revokeKey(page, title);
});

test('a key and the one that replaces it work together until the overlap is ended, or not at all without one', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const accepted = async (...keys: string[]) => (await Promise.all(keys.map((key) => curl(key, PATH)))).map(({ status }) => status);
  const first = await makeKey(page, title);
  const second = await replaceKey(page, title, 'h1');
  expect(second).not.toBe(first);
  expect(await accepted(first, second)).toEqual([200, 200]);
  await row(page, title).getByRole('button', { name: words.endPreviousLabel(title) }).click();
  await dialog(page).getByRole('button', { name: words.endNow }).click();
  await expect(page.getByText(words.changed.ended(title))).toBeVisible();
  expect(await accepted(first, second)).toEqual([401, 200]);
  const third = await replaceKey(page, title, 'h0');
  expect(await accepted(second, third)).toEqual([401, 200]);
  await revokeKey(page, title);
});

test('a key that replaces one whose overlap still runs needs the box ticked', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const first = await makeKey(page, title);
  await replaceKey(page, title, 'h1');
  await row(page, title).getByRole('button', { name: words.rotateLabel(title) }).click();
  await dialog(page).getByRole('button', { name: words.make }).click();
  await expect(dialog(page).getByText(words.endPreviousNeeded)).toBeVisible();
  await dialog(page).getByLabel(words.endPreviousToo).check();
  await dialog(page).getByRole('button', { name: words.make }).click();
  const third = await shownText(page);
  await publish(page);
  expect((await curl(first, PATH)).status).toBe(401);
  expect((await curl(third, PATH)).status).toBe(200);
  await revokeKey(page, title);
});

test('§5.5: a key that its holder revokes is answered 401 once it has left the list', { tag: '@alone' }, async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await makeKey(page, title);
  await row(page, title).getByRole('button', { name: words.revokeLabel(title) }).click();
  await dialog(page).getByRole('button', { name: words.revoke }).click();
  const clicked = performance.now();
  const gone = expect(row(page, title))
    .toHaveCount(0)
    .then(() => performance.now());
  const accepted: number[] = [];
  const ask = async () => {
    const sent = performance.now();
    const { status } = await curl(key, PATH);
    if (status !== 401) accepted.push(sent);
    return status;
  };
  // Seldom enough for the account's 120 requests a minute.
  await expect.poll(ask, { intervals: [250] }).toBe(401);
  test.info().annotations.push({ type: 'revoked to 401', description: `${(performance.now() - clicked).toFixed(0)} ms` });
  // How long it takes is measured elsewhere. Held here is the order: what was sent later is refused, by either gate.
  const left = await gone;
  expect([await ask(), await ask()]).toEqual([401, 401]);
  expect(accepted.filter((sent) => sent > left)).toEqual([]);
});

test('a tab that is closed before "I have saved it" leaves no key', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const tab = await page.context().newPage();
  await openKeys(tab, 'acme');
  const key = await newText(tab, title);
  await tab.close();
  await openKeys(page, 'acme');
  await expect(page.locator('tr[data-key], .empty').first()).toBeVisible();
  await expect(row(page, title)).toHaveCount(0);
  expect((await curl(key, PATH)).status).toBe(401);
});

test('the second of two tabs that replace the same key is told that it has changed', async ({ site }) => {
  site.provokes(/status of 409/);
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  await makeKey(page, title);
  const second = await page.context().newPage();
  await openKeys(second, 'acme');
  await row(second, title).getByRole('button', { name: words.rotateLabel(title) }).click();
  await dialog(second).getByRole('button', { name: words.make }).click();
  const next = await replaceKey(page, title, 'h0');
  const keyId = next.split('_').at(-2) ?? '';
  await expect(row(second, title)).not.toContainText(keyId);
  await dialog(second).getByRole('button', { name: words.saved }).click();
  await expect(dialog(second).getByRole('alert')).toContainText(fr.problems.changed_meanwhile);
  await expect(row(second, title)).toContainText(keyId);
  await expect(dialog(second)).toHaveCount(1);
  await dialog(second).getByRole('button', { name: fr.cancel }).click();
  await revokeKey(page, title);
});

test('a name of 101 characters is refused with the rule beside the field, and a key can be renamed', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  await openForm(page, 'x'.repeat(101));
  await dialog(page).getByRole('button', { name: words.make }).click();
  await expect(dialog(page).getByText(words.titleWrong)).toBeVisible();
  await expect(dialog(page).getByTestId('key-text')).toHaveCount(0);
  await page.keyboard.press('Escape');
  const title = freshTitle();
  await makeKey(page, title);
  const next = freshTitle();
  await row(page, title).getByRole('button', { name: words.renameLabel(title) }).click();
  await dialog(page).getByLabel(words.titleLabel).fill(next);
  await dialog(page).getByRole('button', { name: words.renameSave }).click();
  await expect(row(page, next)).toBeVisible();
  await expect(row(page, title)).toHaveCount(0);
  await revokeKey(page, next);
});

test('a key made by kubectl is listed, cannot be replaced, and can be revoked', async ({ site }) => {
  const name = await keyByKubectl('acme');
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  await expect(row(page, name)).toContainText(words.madeByCluster);
  await expect(row(page, name).getByRole('button', { name: words.rotateLabel(name) })).toHaveCount(0);
  await revokeKey(page, name);
  await expect.poll(() => kubectl(['get', 'apikeys', name, '--ignore-not-found', '-o', 'name'])).toBe('');
});

test('a key on another plan than its holder’s is marked, and has the quota of its own plan', async ({ site }) => {
  const name = await keyByKubectl('initech');
  const page = await site.as(person('initech'));
  await openKeys(page, 'initech');
  await expect(row(page, name)).toContainText(words.otherPlan('Enterprise'));
  await expect(async () => {
    await page.reload();
    await expect(row(page, name)).toHaveAttribute('data-state', 'active', { timeout: 5000 });
  }).toPass();
  await expect(page.locator('[data-plan=Enterprise] .big')).toHaveCount(2);
  await expect(page.locator('[data-plan=Enterprise] .big').first()).toContainText('/ 120');
  await revokeKey(page, name);
  await expect(page.locator('[data-plan]')).toHaveCount(0);
});

/** Makes a key of this account by kubectl, on the plan Enterprise; answers its name, which is its title too. */
async function keyByKubectl(account: string): Promise<string> {
  const name = `essai-${account}-${Date.now().toString(36)}`;
  const api = (await kubectl(['get', 'waterdataapis', '-o', 'jsonpath={.items[0].metadata.name}'])).trim();
  const manifest = {
    apiVersion: 'waterdata.dev/v1',
    kind: 'ApiKey',
    metadata: { name },
    spec: { accountId: account, plan: 'Enterprise', description: name, apiRef: { name: api } },
  };
  await kubectl(['apply', '-f', '-'], JSON.stringify(manifest));
  return name;
}

test('a failed request keeps the text on the page, and the same key can be sent again', async ({ site }) => {
  site.provokes(/ERR_INTERNET_DISCONNECTED/);
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await newText(page, title);
  await page.context().setOffline(true);
  await dialog(page).getByRole('button', { name: words.saved }).click();
  await expect(dialog(page).getByRole('alert')).toContainText(fr.problems.network);
  expect(await shownText(page)).toBe(key);
  await page.context().setOffline(false);
  await retry(page);
  expect((await curl(key, PATH)).status).toBe(200);
  await expect(row(page, title)).toHaveCount(1);
  await revokeKey(page, title);
});

/** Sends a change again, and waits until it is done. */
async function retry(page: Page): Promise<void> {
  await dialog(page).getByRole('button', { name: words.retry }).click();
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await closeDialog(page);
}

test('changes whose answers are lost are told to have failed, and are made once when they are sent again', async ({ site }) => {
  site.provokes(/status of 404|net::ERR_/);
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  /** Sends a change whose answer is lost, and waits until the page says that it failed. */
  const send = async (method: string, name: string) => {
    const { lost } = await loseAnswer(page, method);
    await dialog(page).getByRole('button', { name }).click();
    await lost;
    await expect(dialog(page).getByRole('alert')).toBeVisible();
  };
  const key = await newText(page, title);
  await send('POST', words.saved);
  expect(await shownText(page)).toBe(key);
  await retry(page);
  expect((await curl(key, PATH)).status).toBe(200);
  await expect(row(page, title)).toHaveCount(1);
  const next = await nextText(page, title, 'h1');
  await send('POST', words.saved);
  await retry(page);
  // Two replacements would be two changes, and the first text would be the one before the last.
  for (const text of [key, next]) expect((await curl(text, PATH)).status).toBe(200);
  await row(page, title).getByRole('button', { name: words.revokeLabel(title) }).click();
  await send('DELETE', words.revoke);
  await dialog(page).getByRole('button', { name: words.revoke }).click();
  await expect(page.getByText(words.changed.revoked(title))).toBeVisible();
  await expect(row(page, title)).toHaveCount(0);
  expect((await curl(next, PATH)).status).toBe(401);
});

/** Loses the next answer to a request of this method about a key: the portal has done it, and the page does not learn that. */
async function loseAnswer(page: Page, method: string): Promise<{ lost: Promise<void> }> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Fetch.enable', { patterns: [{ urlPattern: '*/account/v1/accounts/acme/keys*', requestStage: 'Response' }] });
  const lost = new Promise<void>((resolve, reject) => {
    cdp.on('Fetch.requestPaused', ({ requestId, request }) => {
      const fail = () => cdp.send('Fetch.failRequest', { requestId, errorReason: 'ConnectionReset' });
      if (request.method === method) fail().then(() => cdp.detach()).then(resolve, reject);
      // What the page asks for besides; it may have given that up.
      else cdp.send('Fetch.continueRequest', { requestId }).catch(() => undefined);
    });
  });
  return { lost };
}

test('the quota falls and the usage grows by one with each request, and the table shows it', async ({ site }) => {
  // It may have to be done again, and each time waits for what the gates report every 15 s.
  test.slow();
  // No other test makes requests for this account.
  const page = await site.as(person('globex'));
  await openKeys(page, 'globex');
  const title = freshTitle();
  const key = await makeKey(page, title);
  const left = async () => Number((await page.locator('.big').nth(1).innerText()).split('/')[0]?.replaceAll(/\D/g, ''));
  const accepted = () =>
    page.evaluate(async () => {
      const answer = await fetch('/account/v1/accounts/globex/usage?days=1', { headers: { 'X-Poll': '1' } });
      return ((await answer.json()) as { data: { accepted: number }[] }).data.at(-1)?.accepted ?? 0;
    });
  await exactly(async () => {
    await page.reload();
    await expect.poll(left).toBeGreaterThan(0);
    const before = { left: await left(), accepted: await accepted() };
    for (let request = 0; request < 7; request += 1) expect((await curl(key, PATH)).status).toBe(200);
    // The usage first: whatever the quota shows, no request is left that would be reported in the next try only.
    await expect.poll(accepted).toBe(before.accepted + 7);
    await expect.poll(left).toBe(before.left - 7);
    await page.reload();
    await page.getByText(fr.quota.asTable).click();
    const today = page.getByRole('region', { name: fr.quota.usage }).locator('tbody tr').first();
    const shown = new Intl.NumberFormat('fr-FR').format(before.accepted + 7);
    await expect(today.getByRole('cell').first()).toHaveText(shown);
  });
  await revokeKey(page, title);
});
