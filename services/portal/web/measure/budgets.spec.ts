//! What a browser shows of the pages' budgets: paint, shift and long tasks on a slow device, and how long a key takes
//! from the click. Figures are printed: `npm run measure` after `eval "$(cargo dev env)"`.
import type { Page } from '@playwright/test';
import { fr } from '../src/words/fr';
import { curl, person, renewAllowances } from '../tests/cluster';
import { closeDialog, dialog, expect, freshTitle, newText, openKeys, row, test } from '../tests/site';

const words = fr.keys;
const VISITS = 7;
const KEYS = 20;
/** 1.6 Mbit/s in bytes, 150 ms, a CPU four times as slow. */
const SLOW = { offline: false, downloadThroughput: 200_000, uploadThroughput: 200_000, latency: 150 };
const CPU = 4;

type Visit = { paint: number; shift: number; longest: number };

declare global {
  interface Window {
    visit: Visit;
  }
}

/** Opens an address as on a slow device that has nothing in its cache. */
async function visit(page: Page, address: string, ready: string): Promise<Visit> {
  await page.goto(address);
  await page.locator(ready).first().waitFor();
  await page.waitForLoadState('networkidle');
  return page.evaluate(() => window.visit);
}

async function slow(page: Page): Promise<void> {
  const device = await page.context().newCDPSession(page);
  await device.send('Network.enable');
  await device.send('Network.setCacheDisabled', { cacheDisabled: true });
  await device.send('Network.emulateNetworkConditions', SLOW);
  await device.send('Emulation.setCPUThrottlingRate', { rate: CPU });
  await page.addInitScript(() => {
    const seen: Visit = { paint: 0, shift: 0, longest: 0 };
    window.visit = seen;
    const observe = (type: string, look: (entry: PerformanceEntry) => void) => {
      new PerformanceObserver((list) => list.getEntries().forEach(look)).observe({ type, buffered: true });
    };
    observe('largest-contentful-paint', (entry) => (seen.paint = entry.startTime));
    observe('layout-shift', (entry) => (seen.shift += (entry as PerformanceEntry & { value: number }).value));
    observe('longtask', (entry) => (seen.longest = Math.max(seen.longest, entry.duration)));
  });
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;
}

function told(what: string, visits: Visit[]): string {
  const of = (value: (one: Visit) => number, digits: number) => median(visits.map(value)).toFixed(digits);
  return `${what}: largest paint ${of(({ paint }) => paint, 0)} ms, layout shift ${of(({ shift }) => shift, 3)}, longest task ${of(({ longest }) => longest, 0)} ms, medians of ${visits.length}`;
}

test('the map on a slow device, beside an almost empty page', async ({ site }) => {
  const page = await site.as(person('acme'));
  // Beside the answer 400 itself, Chromium asks for an icon, which a page without one lacks.
  site.provokes(/40[04]/);
  await slow(page);
  const maps: Visit[] = [];
  const empty: Visit[] = [];
  const strangers: Visit[] = [];
  for (let number = 0; number < VISITS; number += 1) {
    maps.push(await visit(page, '/a/acme/map?dept=34', '[role=option]'));
    empty.push(await visit(page, '/auth/callback', 'h1'));
  }
  const stranger = await site.browser();
  await slow(stranger);
  for (let number = 0; number < VISITS; number += 1) strangers.push(await visit(stranger, '/', 'figure path'));
  const ratio = median(maps.map(({ paint }) => paint)) / median(empty.map(({ paint }) => paint));
  console.log(told('the map', maps));
  console.log(told('the page of a stranger', strangers));
  console.log(told('an almost empty page', empty));
  console.log(`largest paint of the map ÷ that of the almost empty page: ${ratio.toFixed(2)}`);
});

test('a key from the click to active, and to 401', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const active: number[] = [];
  const dead: number[] = [];
  for (let number = 0; number < KEYS; number += 1) {
    await renewAllowances('acme');
    const title = freshTitle();
    const key = await newText(page, title);
    const saved = performance.now();
    await dialog(page).getByRole('button', { name: words.saved }).click();
    await dialog(page).locator('.state.ok').waitFor();
    active.push(performance.now() - saved);
    await closeDialog(page);
    await row(page, title).getByRole('button', { name: words.revokeLabel(title) }).click();
    const revoked = performance.now();
    await dialog(page).getByRole('button', { name: words.revoke }).click();
    while ((await curl(key, '/api/v1/stress?dept=34')).status === 200) continue;
    dead.push(performance.now() - revoked);
    await expect(row(page, title)).toHaveCount(0);
  }
  const said = (values: number[]) => `p50 ${median(values).toFixed(0)} ms, most ${Math.max(...values).toFixed(0)} ms of ${values.length}`;
  console.log(`"I have saved it" to active at every gate: ${said(active)}`);
  console.log(`"Revoke" to 401: ${said(dead)}`);
});
