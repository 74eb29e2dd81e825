//! The whole way by keyboard alone: no test here clicks.
import type { Locator, Page } from '@playwright/test';
import { fr } from '../src/words/fr';
import { curl, person, setting } from './cluster';
import { dialog, expect, freshTitle, row, shownText, test } from './site';

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

test('a holder signs in, makes, replaces and revokes a key by keyboard alone', async ({ site }) => {
  test.slow();
  const page = await site.browser();
  await signInByKeyboard(page);
  await press(page, page.getByRole('navigation').getByRole('link', { name: fr.nav.keys }));
  await expect(page.getByRole('heading', { level: 1, name: fr.keys.title })).toBeFocused();
  const title = freshTitle();
  await press(page, page.getByRole('button', { name: fr.keys.create }).first());
  await expect(dialog(page).getByLabel(fr.keys.titleLabel)).toBeFocused();
  await page.keyboard.type(title);
  await page.keyboard.press('Enter');
  const old = await shownText(page);
  await press(page, dialog(page).getByRole('button', { name: fr.keys.saved }));
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await press(page, dialog(page).getByRole('button', { name: fr.close }));
  expect((await curl(old, '/api/v1/stress?dept=34')).status).toBe(200);

  await press(page, row(page, title).getByRole('button', { name: fr.keys.rotateLabel(title) }));
  await expect(dialog(page).getByLabel(fr.keys.overlapLabel)).toBeFocused();
  await press(page, dialog(page).getByRole('button', { name: fr.keys.make }));
  const next = await shownText(page);
  await press(page, dialog(page).getByRole('button', { name: fr.keys.saved }));
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toHaveCount(0);
  expect((await curl(next, '/api/v1/stress?dept=34')).status).toBe(200);

  await press(page, row(page, title).getByRole('button', { name: fr.keys.revokeLabel(title) }));
  await press(page, dialog(page).getByRole('button', { name: fr.keys.revoke }));
  await expect(row(page, title)).toHaveCount(0);
  expect((await curl(next, '/api/v1/stress?dept=34')).status).toBe(401);
});

test('the map is one tab stop, and arrow keys go to the neighbour', async ({ site }) => {
  const page = await site.browser();
  await signInByKeyboard(page);
  await expect(page.locator('[role=option]')).toHaveCount(101);
  await expect(page.locator('[role=option][tabindex="0"]')).toHaveCount(1);
  await tabTo(page, page.locator('[role=option][tabindex="0"]'));
  await page.keyboard.press('Home');
  await expect(page.locator('.france').getByRole('option', { selected: true })).toHaveAttribute('data-code', '01');
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.france').getByRole('option', { selected: true })).not.toHaveAttribute('data-code', '01');
  await page.keyboard.press('End');
  await expect(page.locator('.france').getByRole('option', { selected: true })).toHaveAttribute('data-code', '976');
  await expect(page.getByRole('heading', { level: 2, name: /Mayotte/ })).toBeVisible();
});

test('the plot’s points can be walked and told', async ({ site }) => {
  const page = await site.browser();
  await signInByKeyboard(page);
  await press(page, page.getByRole('navigation').getByRole('link', { name: fr.nav.history }));
  const plot = page.getByRole('slider', { name: fr.history.plot });
  await expect(page.locator('tbody tr').first()).toBeVisible();
  await tabTo(page, plot);
  await page.keyboard.press('End');
  const last = await plot.getAttribute('aria-valuetext');
  await page.keyboard.press('ArrowLeft');
  await expect(plot).not.toHaveAttribute('aria-valuetext', last ?? '');
  await expect(page.locator('.readout')).toHaveText((await plot.getAttribute('aria-valuetext')) ?? '');
});

test('Escape in a dialog closes it and gives the focus back', async ({ site }) => {
  const page = await site.browser();
  await signInByKeyboard(page);
  await press(page, page.getByRole('navigation').getByRole('link', { name: fr.nav.keys }));
  const create = page.getByRole('button', { name: fr.keys.create }).first();
  await press(page, create);
  await expect(dialog(page)).toHaveCount(1);
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toHaveCount(0);
  await expect(create).toBeFocused();
});
