//! Every page, in both languages, light and dark, wide and narrow: accessibility, policy, console, width.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '@playwright/test';
import { person } from './cluster';
import { expect, test } from './site';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

type Axe = { run: (root: Document, options: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async (tags) => {
    const { axe } = window as unknown as { axe: Axe };
    const { violations } = await axe.run(document, { runOnly: tags });
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`);
  }, TAGS);
}

const PAGES: [string, string, string][] = [
  ['the map', '/a/acme/map?dept=34', '[role=option]'],
  ['the history', '/a/acme/history', 'tbody tr'],
  ['the keys', '/a/acme/settings/api', '.big'],
  ['the reference', '/docs', '[data-try]'],
  ['the sources', '/sources', 'tbody tr'],
];

for (const lang of ['fr', 'en'] as const) {
  for (const scheme of ['light', 'dark'] as const) {
    test(`every page has no finding of axe, no policy report, no error and no sideways scrolling (${lang}, ${scheme})`, async ({ site }) => {
      test.slow();
      const page = await site.as(person('acme'), { lang, scheme });
      for (const [name, address, ready] of PAGES) {
        for (const width of [1280, 320]) {
          await page.setViewportSize({ width, height: 900 });
          await page.goto(address);
          await expect(page.locator(ready).first(), name).toBeVisible();
          await expect(page.locator('html')).toHaveAttribute('lang', lang);
          expect(await findings(page), `${name}, ${width} px`).toEqual([]);
          expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${name}, ${width} px`).toBeLessThanOrEqual(0);
        }
      }
    });

    test(`the first page of a stranger has none either (${lang}, ${scheme})`, async ({ site }) => {
      const page = await site.browser({ lang, scheme });
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto('/');
        await expect(page.locator('figure path').first()).toBeVisible();
        expect(await findings(page), `${width} px`).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      }
    });
  }
}

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

test('every page is under the strict policy and asks its own origin only', async ({ site }) => {
  const page = await site.as(person('acme'));
  const strangers: string[] = [];
  const origin = new URL(page.url()).origin;
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
