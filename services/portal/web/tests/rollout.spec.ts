//! A page of one version meets the assets of another, as it happens while a rollout goes on: the request
//! for an asset is sent on under a name that the portal does not have.
import { expect, test } from './site';
import { fr } from '../src/words/fr';
import type { Page } from '@playwright/test';

/** Asks for another version's file in place of those that match, so often; answers how often it did. */
async function misdirect(page: Page, assets: RegExp, times: number): Promise<() => number> {
  let asked = 0;
  await page.route(assets, (route) => {
    if (asked >= times) return route.continue();
    asked += 1;
    return route.continue({ url: route.request().url().replace(/-[\w-]{8}\./, '-00000000.') });
  });
  return () => asked;
}

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

test('a page whose script is another version’s loads itself again until both are of one', async ({ site }) => {
  const page = await site.browser();
  const asked = await misdirect(page, /\/assets\/index-[^/]+\.js$/, 3);
  await page.goto('/sources');
  await expect(heading(page, fr.sources.title)).toBeVisible();
  expect(asked()).toBe(3);
});

test('a page whose style is another version’s loads itself again', async ({ site }) => {
  site.provokes(/status of 404|Refused to apply style/);
  const page = await site.browser();
  const asked = await misdirect(page, /\/assets\/index-[^/]+\.css$/, 1);
  await page.goto('/sources');
  await expect(heading(page, fr.sources.title)).toBeVisible();
  await expect.poll(() => page.evaluate(() => document.styleSheets.length)).toBeGreaterThan(0);
  expect(asked()).toBe(1);
});

test('a page that is gone to after a rollout loads itself again, and is the one that was asked for', async ({ site }) => {
  const page = await site.browser();
  await page.goto('/');
  await expect(page.locator('figure path').first()).toBeVisible();
  const asked = await misdirect(page, /\/assets\/sources-[^/]+\.js$/, 2);
  await page.locator('a[href="/sources"]').first().click();
  await expect(heading(page, fr.sources.title)).toBeVisible();
  expect(new URL(page.url()).pathname).toBe('/sources');
  expect(asked()).toBe(2);
});

test('a page whose script stays away gives up and says so', async ({ site }) => {
  const page = await site.browser();
  // It waits 43 s in all between its tries, and counts those of two minutes: on its clock all are at the same time.
  await page.addInitScript(() => {
    const later = window.setTimeout;
    window.setTimeout = ((call: () => void, wait: number) => later(call, wait / 50)) as typeof setTimeout;
    Date.now = () => 1e12;
  });
  const asked = await misdirect(page, /\/assets\/index-[^/]+\.js$/, Infinity);
  await page.goto('/sources');
  await expect(page.getByRole('alert')).toContainText('This page could not be loaded');
  expect(asked()).toBe(13);
});
