//! The whole way by keyboard alone: no test here clicks.
import type { Locator, Page } from '@playwright/test';
import { en } from '../src/words/en';
import { fr } from '../src/words/fr';
import { curl, person, setting } from './cluster';
import { dialog, expect, freshTitle, row, shownText, test } from './site';

const PATH = '/api/v1/stress?dept=34';

/** Presses Tab until this has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await expect(target).toBeVisible();
  for (let press = 0; press < 150; press += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`150 tabs did not reach ${String(target)}`);
}

async function press(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

async function signInByKeyboard(page: Page): Promise<void> {
  const holder = person('acme');
  await page.goto('/');
  await press(page, page.locator('main a[href^="/auth/sign-in"]'));
  await tabTo(page, page.locator('input[name=login]'));
  await page.keyboard.type(holder.email);
  await tabTo(page, page.locator('input[name=password]'));
  await page.keyboard.type(holder.password);
  await page.keyboard.press('Enter');
  await page.waitForURL((address) => address.origin === setting('WATER_PORTAL_URL'));
}

async function goToKeys(page: Page): Promise<void> {
  await press(page, page.getByRole('navigation').getByRole('link', { name: fr.nav.keys }));
  await expect(page.getByRole('heading', { level: 1, name: fr.keys.title })).toBeFocused();
}

/** Says that the shown text is saved and waits until every gate knows it. */
async function publishByKeyboard(page: Page): Promise<string> {
  const text = await shownText(page);
  await press(page, dialog(page).getByRole('button', { name: fr.keys.saved }));
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await press(page, dialog(page).getByRole('button', { name: fr.close }));
  await expect(dialog(page)).toHaveCount(0);
  return text;
}

async function makeKeyByKeyboard(page: Page, title: string): Promise<string> {
  await press(page, page.getByRole('button', { name: fr.keys.create }).first());
  await expect(dialog(page).getByLabel(fr.keys.titleLabel)).toBeFocused();
  await page.keyboard.type(title);
  await page.keyboard.press('Enter');
  return publishByKeyboard(page);
}

async function revokeByKeyboard(page: Page, title: string): Promise<void> {
  await press(page, row(page, title).getByRole('button', { name: fr.keys.revokeLabel(title) }));
  await press(page, dialog(page).getByRole('button', { name: fr.keys.revoke }));
  await expect(row(page, title)).toHaveCount(0);
}

test('a holder signs in, makes a key, tries it in the reference and revokes it by keyboard alone', async ({ site }) => {
  test.slow();
  const page = await site.browser();
  await signInByKeyboard(page);
  await goToKeys(page);
  const create = page.getByRole('button', { name: fr.keys.create }).first();
  await press(page, create);
  await expect(dialog(page)).toHaveCount(1);
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toHaveCount(0);
  await expect(create).toBeFocused();
  const title = freshTitle();
  const key = await makeKeyByKeyboard(page, title);
  expect((await curl(key, PATH)).status).toBe(200);

  await press(page, page.getByRole('navigation').getByRole('link', { name: fr.nav.docs }));
  const box = page.locator('[data-try="/api/v1/stress"]');
  await press(page, box.locator('summary'));
  await tabTo(page, box.getByLabel(fr.docs.tryKey));
  await page.keyboard.type(key);
  await tabTo(page, box.getByLabel('dept', { exact: true }));
  await page.keyboard.type('34');
  await page.keyboard.press('Enter');
  await expect(box.locator('.state.ok')).toHaveText('200');
  await goToKeys(page);
  await revokeByKeyboard(page, title);
  expect((await curl(key, PATH)).status).toBe(401);
});

test('a holder renames a key, replaces it, and ends the one before it, by keyboard alone', async ({ site }) => {
  test.slow();
  const page = await site.as(person('acme'));
  await page.goto('/');
  await goToKeys(page);
  const [first, title] = [freshTitle(), freshTitle()];
  const old = await makeKeyByKeyboard(page, first);
  await press(page, row(page, first).getByRole('button', { name: fr.keys.renameLabel(first) }));
  await expect(dialog(page).getByLabel(fr.keys.titleLabel)).toBeFocused();
  await page.keyboard.press('Control+A');
  await page.keyboard.type(title);
  await page.keyboard.press('Enter');
  await expect(dialog(page)).toHaveCount(0);
  await expect(row(page, title)).toBeVisible();

  await press(page, row(page, title).getByRole('button', { name: fr.keys.rotateLabel(title) }));
  await expect(dialog(page).getByLabel(fr.keys.overlapLabel)).toBeFocused();
  await page.keyboard.press('ArrowUp');
  await expect(dialog(page).getByLabel(fr.keys.overlapLabel)).toHaveValue('h1');
  await press(page, dialog(page).getByRole('button', { name: fr.keys.make }));
  const next = await publishByKeyboard(page);
  await press(page, row(page, title).getByRole('button', { name: fr.keys.endPreviousLabel(title) }));
  await press(page, dialog(page).getByRole('button', { name: fr.keys.endNow }));
  await expect(row(page, title).getByRole('button', { name: fr.keys.endPreviousLabel(title) })).toHaveCount(0);
  expect([(await curl(old, PATH)).status, (await curl(next, PATH)).status]).toEqual([401, 200]);
  await revokeByKeyboard(page, title);
});

test('the map is one tab stop whose neighbours arrow keys reach, and its scale and table are used by keyboard alone', async ({ site }) => {
  const page = await site.as(person('acme'));
  await page.goto('/');
  await expect(page.locator('[role=option]')).toHaveCount(101);
  await tabTo(page, page.getByRole('radio', { name: fr.map.by.level }));
  await page.keyboard.press('ArrowRight');
  await expect(page.getByRole('radio', { name: fr.map.by.stress })).toBeFocused();
  await expect(page.getByRole('radio', { name: fr.map.by.stress })).toBeChecked();
  await expect(page).toHaveURL(/by=stress/);

  await expect(page.locator('[role=option][tabindex="0"]')).toHaveCount(1);
  await tabTo(page, page.locator('[role=option][tabindex="0"]'));
  const selected = page.locator('.france').getByRole('option', { selected: true });
  await page.keyboard.press('Home');
  await expect(selected).toHaveAttribute('data-code', '01');
  await page.keyboard.press('ArrowRight');
  await expect(selected).not.toHaveAttribute('data-code', '01');
  await page.keyboard.press('End');
  await expect(selected).toHaveAttribute('data-code', '976');
  await expect(page.getByRole('heading', { level: 2, name: /Mayotte/ })).toBeVisible();

  const table = page.getByRole('region', { name: fr.map.table });
  await expect(table.locator('tbody tr')).toHaveCount(101);
  const head = table.getByRole('columnheader', { name: fr.map.short.stress });
  await press(page, head.getByRole('button'));
  await expect(head).toHaveAttribute('aria-sort', 'descending');
  const shown = await table.locator('tbody td.n').allInnerTexts();
  const indices = shown.filter((text) => text !== '–').map((text) => Number(text.replace(',', '.')));
  expect(indices.length).toBeGreaterThan(90);
  expect(indices).toEqual([...indices].sort((a, b) => b - a));
  const first = table.locator('tbody tr').first().getByRole('button');
  await press(page, first);
  await expect(first).toHaveAttribute('aria-pressed', 'true');
  await expect(page.getByRole('heading', { level: 2, name: await first.innerText() })).toBeVisible();
});

test('the plot’s points can be walked and told, the language changed, and the session ended, by keyboard alone', async ({ site }) => {
  const page = await site.browser();
  await signInByKeyboard(page);
  await press(page, page.getByRole('navigation').getByRole('link', { name: fr.nav.history }));
  const plot = page.getByRole('slider', { name: fr.history.plot });
  // Its rows come with two answers, of which the second one takes the point at hand back.
  await expect(plot).toHaveAttribute('aria-valuemax', '1000');
  await tabTo(page, plot);
  await page.keyboard.press('End');
  const last = await plot.getAttribute('aria-valuetext');
  await page.keyboard.press('ArrowLeft');
  await expect(plot).not.toHaveAttribute('aria-valuetext', last ?? '');
  await expect(page.locator('.readout')).toHaveText((await plot.getAttribute('aria-valuetext')) ?? '');
  await press(page, page.locator('.menu > summary'));
  await tabTo(page, page.getByRole('radio', { name: 'Français' }));
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('html')).toHaveAttribute('lang', 'en');
  await press(page, page.getByRole('button', { name: en.signOut }));
  await page.waitForURL((address) => address.origin === setting('WATER_PORTAL_URL') && !address.pathname.startsWith('/a/'));
  await expect(page.locator('main a[href^="/auth/sign-in"]')).toBeVisible();
});
