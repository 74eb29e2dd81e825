//! Every process of the portal is killed while a page asks it to make, replace or revoke a key. The page says so, and
//! its own retry brings the change to its end, once: fault 42 in a browser, behind the real ingress.
import type { CDPSession, Page } from '@playwright/test';
import { fr } from '../src/words/fr';
import { curl, kubectl, person, renewAllowances } from './cluster';
import { kill, processes, replacePods } from './portal';
import { closeDialog, dialog, expect, freshTitle, makeKey, newText, nextText, openKeys, revokeKey, row, shownText, test, type Site } from './site';

const PATH = '/api/v1/stress?dept=34';
const words = fr.keys;

/** `before` the request is delivered, that share of its usual time after it was, or `after` it was answered and before the page knows. */
type Moment = 'before' | number | 'after';
const MOMENTS: Moment[] = ['before', 0.3, 0.7, 'after'];

/** A change that a dialog is about to send: how it is sent, sent again, and seen to be done. */
type Change = { method: 'POST' | 'DELETE'; send: () => Promise<void>; again: () => Promise<void>; isDone: () => Promise<boolean> };
type ApiKey = { metadata: { generation: number }; spec: { description?: string; material: { hash: { keyId: string } } } };

/** The ApiKeys of a title. */
async function apiKeys(title: string): Promise<ApiKey[]> {
  const { items } = JSON.parse(await kubectl(['get', 'apikeys', '-o', 'json'])) as { items: ApiKey[] };
  return items.filter(({ spec }) => spec.description === title);
}

/** Sends a change while nobody dies; answers how many milliseconds the portal takes to answer it. */
async function usualTime(page: Page, { method, send, isDone }: Change): Promise<number> {
  const asked = page.waitForRequest((request) => request.method() === method);
  await send();
  const request = await asked;
  await request.response();
  await expect.poll(isDone).toBe(true);
  const { requestStart, responseStart } = request.timing();
  return responseStart - requestStart;
}

/** Holds the next request of this method about a key so that `doomed` die at this moment of it. */
async function arm(cdp: CDPSession, method: string, moment: Moment, usual: number, doomed: number[]): Promise<{ dead: Promise<void> }> {
  const requestStage = moment === 'after' ? 'Response' : 'Request';
  await cdp.send('Fetch.enable', { patterns: [{ urlPattern: '*/account/v1/accounts/acme/keys*', requestStage }] });
  const dead = new Promise<void>((resolve, reject) => {
    cdp.on('Fetch.requestPaused', ({ requestId, request }) => {
      const goOn = () => cdp.send('Fetch.continueRequest', { requestId });
      const strike = async () => {
        if (typeof moment === 'number') {
          await goOn();
          await new Promise((over) => setTimeout(over, moment * usual));
        }
        await kill(doomed);
        if (moment === 'before') await goOn();
        if (moment === 'after') await cdp.send('Fetch.failRequest', { requestId, errorReason: 'ConnectionReset' });
      };
      if (request.method === method) strike().then(resolve, reject);
      // What the page asks for besides; it may have given that up.
      else goOn().catch(() => undefined);
    });
  });
  return { dead };
}

/** Sends a change while every process of the portal dies, and again if the page says that it failed. */
async function sendThroughDeath(page: Page, { method, send, again, isDone }: Change, moment: Moment, usual: number): Promise<void> {
  const doomed = await processes();
  expect(doomed).toHaveLength(2);
  const cdp = await page.context().newCDPSession(page);
  const { dead } = await arm(cdp, method, moment, usual, doomed);
  await send();
  await dead;
  await cdp.detach();
  await replacePods();
  await expect(async () => expect(await answers(page)).toEqual(Array(10).fill(200))).toPass({ timeout: 60_000 });
  const failed = dialog(page).getByRole('alert');
  await expect.poll(async () => (await failed.count()) > 0 || (await isDone())).toBe(true);
  const toldSo = (await failed.count()) > 0;
  console.log(`killed ${typeof moment === 'number' ? `${(moment * usual).toFixed(0)} ms into it` : moment}: ${toldSo ? 'failed, sent again' : 'answered all the same'}`);
  if (typeof moment !== 'number') expect(toldSo).toBe(true);
  if (toldSo) await again();
  await expect.poll(isDone).toBe(true);
}

/** What the portal answers ten questions in a row: the ingress may know pods that are gone for a moment. */
function answers(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const all: number[] = [];
    for (let question = 0; question < 10; question += 1) all.push((await fetch('/account/v1/session').catch(() => undefined))?.status ?? 0);
    return all;
  });
}

/** The keys' page of a holder, on which the portal may fail. */
async function holder(site: Site): Promise<Page> {
  test.slow();
  site.provokes(/status of 50[234]|net::ERR_/);
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  return page;
}

/** "I have saved it" of the dialog that shows a key's text. */
function saving(page: Page): Change {
  const press = (name: string) => dialog(page).getByRole('button', { name }).click();
  const isDone = () => dialog(page).locator('.state.ok').isVisible();
  return { method: 'POST', send: () => press(words.saved), again: () => press(words.retry), isDone };
}

/**
 * Makes a kind of change once undisturbed, which shows how long it takes, and once for each moment at which every portal
 * dies. `change` is given a title that no key has, and `send`, by which it sends what its dialog is about to send.
 */
async function atEveryMoment(page: Page, change: (title: string, send: (change: Change) => Promise<void>) => Promise<void>): Promise<void> {
  let usual = 0;
  await renewAllowances('acme');
  await change(freshTitle(), async (sent) => {
    usual = await usualTime(page, sent);
  });
  for (const moment of MOMENTS) {
    await renewAllowances('acme');
    await change(freshTitle(), (sent) => sendThroughDeath(page, sent, moment, usual));
  }
}

test('a key that is made while every portal is killed is made once, and its text works', async ({ site }) => {
  const page = await holder(site);
  await atEveryMoment(page, async (title, send) => {
    const key = await newText(page, title);
    await send(saving(page));
    expect(await shownText(page)).toBe(key);
    await closeDialog(page);
    expect((await curl(key, PATH)).status).toBe(200);
    expect(await apiKeys(title)).toHaveLength(1);
    await expect(row(page, title)).toHaveCount(1);
    await revokeKey(page, title);
  });
});

test('a key that is replaced while every portal is killed is replaced once, and both texts work', async ({ site }) => {
  const page = await holder(site);
  await atEveryMoment(page, async (title, send) => {
    const old = await makeKey(page, title);
    const [made] = await apiKeys(title);
    const next = await nextText(page, title, 'h1');
    await send(saving(page));
    expect(await shownText(page)).toBe(next);
    await closeDialog(page);
    for (const key of [old, next]) expect((await curl(key, PATH)).status).toBe(200);
    // Two replacements would be two changes, and the first text would be the one before the last.
    const found = await apiKeys(title);
    expect(found.map(({ metadata }) => metadata.generation)).toEqual([(made?.metadata.generation ?? 0) + 1]);
    expect(found[0]?.spec.material.hash.keyId).toBe(next.split('_').at(-2));
    await revokeKey(page, title);
  });
});

test('a key that is revoked while every portal is killed is gone', async ({ site }) => {
  // What a key is that an earlier try has revoked.
  site.provokes(/status of 404/);
  const page = await holder(site);
  await atEveryMoment(page, async (title, send) => {
    const key = await makeKey(page, title);
    await row(page, title).getByRole('button', { name: words.revokeLabel(title) }).click();
    const press = () => dialog(page).getByRole('button', { name: words.revoke }).click();
    await send({ method: 'DELETE', send: press, again: press, isDone: async () => (await dialog(page).count()) === 0 });
    await expect(page.getByText(words.changed.revoked(title))).toBeVisible();
    await expect(row(page, title)).toHaveCount(0);
    expect((await curl(key, PATH)).status).toBe(401);
    expect(await apiKeys(title)).toEqual([]);
  });
});
