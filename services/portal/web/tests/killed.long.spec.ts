//! Every process of the portal is killed while a page asks it to make a key. The page says so, and its own retry brings the
//! change to its end, once: fault 42 in a browser, behind the real ingress. Every moment of every change is tried by the
//! portal's own tests.
import { fr } from '../src/words/fr';
import { curl, kubectl, person } from './cluster';
import { kill, processes, Release, replacePods } from './portal';
import { closeDialog, dialog, expect, freshTitle, newText, openKeys, revokeKey, row, shownText, test } from './site';

const LIST = '**/account/v1/accounts/acme/keys';
const words = fr.keys;

test('a key that is made while every portal is killed is made once, and its text works', async ({ site }) => {
  test.slow();
  await Release.asInstalled();
  site.provokes(/status of 50[234]|net::ERR_/);
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await newText(page, title);
  await expect.poll(processes).toHaveLength(2);
  const doomed = await processes();
  await page.route(LIST, async (route) => {
    if (route.request().method() === 'POST') await kill(doomed);
    await route.continue();
  });
  await dialog(page).getByRole('button', { name: words.saved }).click();
  await expect(dialog(page).getByRole('alert')).toBeVisible();
  expect(await shownText(page)).toBe(key);
  await page.unrouteAll({ behavior: 'wait' });
  await replacePods();
  // The ingress may know pods that are gone for a moment.
  const answers = () =>
    page.evaluate(async () => {
      const all: number[] = [];
      for (let question = 0; question < 10; question += 1) all.push((await fetch('/account/v1/session').catch(() => undefined))?.status ?? 0);
      return all;
    });
  await expect(async () => expect(await answers()).toEqual(Array(10).fill(200))).toPass({ timeout: 60_000 });
  await dialog(page).getByRole('button', { name: words.retry }).click();
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await closeDialog(page);
  expect((await curl(key, '/api/v1/stress?dept=34')).status).toBe(200);
  const { items } = JSON.parse(await kubectl(['get', 'apikeys', '-o', 'json'])) as { items: { spec: { description?: string } }[] };
  expect(items.filter(({ spec }) => spec.description === title)).toHaveLength(1);
  await expect(row(page, title)).toHaveCount(1);
  await revokeKey(page, title);
});
