//! Every page in one look, wide and narrow: accessibility, policy, console, width.
import { expectClean } from './clean';
import { person } from './cluster';
import type { Appearance } from './looks';
import { expect, test } from './site';

/** Name, address and a selector of what is there once the page is ready. */
export const PAGES: [string, string, string][] = [
  ['the map', '/a/acme/map?dept=34', '[role=option]'],
  ['the history', '/a/acme/history', 'tbody tr'],
  ['the keys', '/a/acme/settings/api', '.big'],
  ['the reference', '/docs', '[data-try]'],
  ['the sources', '/sources', 'tbody tr'],
];

/** Defines a test of each page, in one look. */
export function testPages(look: Appearance): void {
  for (const [name, address, ready] of PAGES) {
    test(`${name}: no finding of axe, no policy report, no error and no sideways scrolling (${look.lang}, ${look.scheme})`, async ({ site }) => {
      const page = await site.as(person('acme'), look);
      await page.goto(address);
      await expect(page.locator(ready).first()).toBeVisible();
      await expect(page.locator('html')).toHaveAttribute('lang', look.lang);
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 900 });
        await expectClean(page, `${width} px`);
      }
    });
  }

  test(`the first page of a stranger has none either (${look.lang}, ${look.scheme})`, async ({ site }) => {
    const page = await site.browser(look);
    await page.goto('/');
    await expect(page.locator('figure path').first()).toBeVisible();
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 900 });
      await expectClean(page, `${width} px`);
    }
  });
}
