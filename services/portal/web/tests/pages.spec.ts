//! Every page: accessibility, policy, console and width in the first look, what it loads, and from where.
import type { Page } from '@playwright/test';
import { person, setting } from './cluster';
import { FIRST } from './looks';
import { PAGES, testPages } from './pages';
import { expect, test } from './site';

testPages(FIRST);

test('the first page takes four requests and at most 45 KB', async ({ site }) => {
  const page = await site.browser();
  const asked: { path: string; bytes: Promise<number> }[] = [];
  page.on('requestfinished', (request) => {
    const path = new URL(request.url()).pathname;
    asked.push({ path, bytes: request.sizes().then((sizes) => sizes.responseBodySize) });
  });
  await page.goto('/');
  await expect(page.locator('figure path').first()).toBeVisible();
  await page.waitForLoadState('networkidle');
  const own = asked.filter(({ path }) => !path.startsWith('/account/') && !path.endsWith('.svg'));
  expect(own.map(({ path }) => path.replace(/-[\w-]{8}\./, '-*.')).sort()).toEqual(['/', '/assets/index-*.css', '/assets/index-*.js', '/assets/outlines-*.json']);
  const sizes = await Promise.all(own.map(({ bytes }) => bytes));
  const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
  test.info().annotations.push({ type: 'first page', description: `${total} bytes` });
  expect(total).toBeLessThanOrEqual(45 * 1024);
});

/** The bytes of the assets that a page has loaded, by path, as they were sent. */
function assets(page: Page): Promise<Record<string, number>> {
  return page.evaluate(() => {
    const loaded = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
    const own = loaded.map((one) => ({ path: new URL(one.name).pathname, bytes: one.encodedBodySize })).filter(({ path }) => path.startsWith('/assets/'));
    return Object.fromEntries(own.map(({ path, bytes }) => [path, bytes]));
  });
}

test('each other page adds at most 25 KB, and all together have at most 120 KB', async ({ site }) => {
  const page = await site.as(person('acme'));
  await page.goto('/');
  await expect(page.locator('[role=option]').first()).toBeVisible();
  const all = await assets(page);
  const first = Object.keys(all).filter((path) => !path.endsWith('.svg'));
  expect(first.length).toBeGreaterThan(2);
  for (const [name, address, ready] of PAGES.slice(1)) {
    await page.goto(address);
    await expect(page.locator(ready).first(), name).toBeVisible();
    const added = Object.entries(await assets(page)).filter(([path]) => !first.includes(path));
    const bytes = added.reduce((sum, [, size]) => sum + size, 0);
    test.info().annotations.push({ type: name, description: `${bytes} bytes` });
    expect(bytes, name).toBeGreaterThan(0);
    expect(bytes, name).toBeLessThanOrEqual(25 * 1024);
    Object.assign(all, Object.fromEntries(added));
  }
  const total = Object.values(all).reduce((sum, size) => sum + size, 0);
  test.info().annotations.push({ type: 'all pages', description: `${total} bytes` });
  expect(total).toBeLessThanOrEqual(120 * 1024);
});

test('every page is under the strict policy and asks its own origin only', async ({ site }) => {
  const page = await site.as(person('acme'));
  const strangers: string[] = [];
  const origin = setting('WATER_PORTAL_URL');
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('blob:')) strangers.push(request.url());
  });
  for (const [name, address, ready] of PAGES) {
    const answer = await page.goto(address);
    const policy = answer?.headers()['content-security-policy'] ?? '';
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]) {
      expect(policy, name).toContain(part);
    }
    await expect(page.locator(ready).first(), name).toBeVisible();
  }
  expect(strangers).toEqual([]);
});

test('the reader’s choice of language and theme stays', async ({ site }) => {
  const page = await site.browser({ lang: 'fr' });
  await page.goto('/');
  await page.locator('.menu > summary').click();
  await page.getByRole('radio', { name: 'English' }).check();
  await page.getByRole('radio', { name: 'Dark' }).check();
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('lang', 'en');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});
