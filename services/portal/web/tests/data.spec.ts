//! What the pages show of the data: the map beside the API, the history, the reference's recipes.
import { fr } from '../src/words/fr';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { curl, curlHome, folder, person, run } from './cluster';
import { expect, freshTitle, makeKey, openKeys, revokeKey, signIn, test } from './site';

type Stress = { dept: string; stressIndex: number; level: keyof typeof fr.map.levels };
type Risk = { dept: string; flood: number; drought: number; overall: number };

const LEVELS = ['normal', 'vigilance', 'alerte', 'alerte_renforcee', 'crise'];

test('the map agrees with the API in all 101 départements and five scales', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await makeKey(page, title);
  const ask = async <T>(path: string) => (JSON.parse((await curl(key, path)).body) as { data: T[] }).data;
  const stress = new Map((await ask<Stress>('/api/v1/stress')).map((one) => [one.dept, one]));
  const risk = new Map((await ask<Risk>('/api/v1/risque')).map((one) => [one.dept, one]));
  const number = new Intl.NumberFormat('fr-FR', { maximumFractionDigits: 3 });
  const band = (value: number | undefined, wide: number) => (value === undefined ? 'none' : String(Math.min(4, Math.floor(value / wide))));
  for (const by of ['level', 'stress', 'flood', 'drought', 'overall'] as const) {
    await page.goto(`/a/acme/map?by=${by}`);
    await expect(page.locator('[role=option]')).toHaveCount(101);
    const shown = await page.locator('[role=option]').evaluateAll((options) =>
      options.map((one) => ({ code: one.getAttribute('data-code') ?? '', step: one.getAttribute('data-step'), label: one.getAttribute('aria-label') ?? '' })),
    );
    expect(new Set(shown.map(({ code }) => code)).size).toBe(101);
    for (const { code, step, label } of shown) {
      const value = by === 'level' || by === 'stress' ? stress.get(code)?.stressIndex : risk.get(code)?.[by];
      const level = stress.get(code)?.level;
      const expected = by === 'level' ? (level === undefined ? 'none' : String(LEVELS.indexOf(level))) : band(value, by === 'stress' ? 1 : 20);
      expect(step, `${by} ${code}`).toBe(expected);
      const words = by === 'level' ? (level === undefined ? fr.map.noData : fr.map.levels[level]) : value === undefined ? fr.map.noData : number.format(value);
      expect(label.split(' : ')[1], `${by} ${code}`).toMatch(new RegExp(`^${words.replaceAll('.', '\\.')}( |$)`));
    }
  }
  await openKeys(page, 'acme');
  await revokeKey(page, title);
});

test('the address keeps scale and département, the legend counts every département once, and the picked one shows what the API answers of it', async ({ site }) => {
  const page = await site.as(person('acme'));
  await page.goto('/a/acme/map?by=flood&dept=34');
  await expect(page.getByRole('radio', { name: fr.map.by.flood })).toBeChecked();
  await page.getByRole('radio', { name: fr.map.by.drought }).check();
  await expect(page).toHaveURL(/by=drought&dept=34$/);
  await expect(page.locator('[role=option]')).toHaveCount(101);
  const of = (dataset: string) => page.evaluate(async (path) => (await (await fetch(path)).json()) as unknown, `/account/v1/accounts/acme/${dataset}?dept=34`);
  const [stress, risk] = [(await of('stress')) as Stress, (await of('risque')) as Risk];
  const number = new Intl.NumberFormat('fr-FR', { maximumFractionDigits: 3 });
  const details = page.locator('section.card').filter({ has: page.getByRole('heading', { level: 2, name: /Hérault/ }) });
  await expect(details.locator('.pill')).toContainText(fr.map.levels[stress.level]);
  const figures = { [fr.map.stressIndex]: stress.stressIndex, [fr.map.floodRisk]: risk.flood, [fr.map.droughtRisk]: risk.drought, [fr.map.overallRisk]: risk.overall };
  for (const [name, figure] of Object.entries(figures)) {
    const line = details.locator('dt', { hasText: name }).locator('xpath=following-sibling::dd[1]');
    await expect(line).toHaveText(new RegExp(`^${number.format(figure)} / `));
  }
  // The register has no level overseas: theirs are derived from the index, and so is their origin.
  const levelsBy = (text: string) => page.locator('section.card').filter({ hasText: `${fr.map.what.vigieau} : ${text}` });
  await expect(levelsBy('VigiEau')).toContainText('Hérault');
  await page.goto('/a/acme/map?by=drought&dept=974');
  await expect(levelsBy(fr.map.synthetic)).toContainText('La Réunion');
  const steps = await page.locator('[role=option]').evaluateAll((options) => options.map((one) => one.getAttribute('data-step')));
  const counted = await page.locator('.legend li b').allInnerTexts();
  const expected = ['0', '1', '2', '3', '4', 'none'].map((step) => steps.filter((one) => one === step).length);
  expect(counted.map(Number)).toEqual(expected.filter((count, index) => index < 5 || count > 0));
});

test('the history has as many rows as the API says, and its file has all of them', async ({ site }) => {
  const page = await site.as(person('acme'));
  await page.goto('/a/acme/history');
  const told = await page.evaluate(async () => ((await (await fetch('/account/v1/accounts/acme/hydrorisk?limit=1')).json()) as { total: number }).total);
  expect(told).toBeGreaterThan(0);
  const number = new Intl.NumberFormat('fr-FR');
  await expect(page.locator('.lede')).toContainText(fr.history.lede.analyses(number.format(told)));
  // A database that is too slow for the largest page answers a smaller one.
  site.provokes(/status of 503/);
  const slow = { status: 503, headers: { 'Retry-After': '1' }, json: { code: 'dependency_unavailable' } };
  await page.route('**/hydrorisk?limit=5000', (route) => route.fulfill(slow));
  const smaller = page.waitForResponse((answer) => answer.url().endsWith('/hydrorisk?limit=2500'));
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: fr.history.csv }).click();
  expect((await smaller).status()).toBe(200);
  const file = await (await download).path();
  const lines = readFileSync(file, 'utf8').trimEnd().split('\r\n');
  expect(lines[0]?.startsWith('\uFEFFid;')).toBe(true);
  expect(lines.length - 1).toBe(told);
});

test('a history whose newer answer fails stays on the page, with the time of the last one', async ({ site }) => {
  site.provokes(/status of 503/);
  const page = await site.as(person('acme'));
  const part = '**/accounts/acme/hydrorisk?*';
  const away = { status: 503, json: { code: 'upstream_unavailable' } };
  await page.route(part, (route) => (route.request().url().endsWith('limit=100&offset=0') ? route.continue() : route.fulfill(away)));
  await page.goto('/a/acme/history');
  const notice = page.getByRole('alert');
  await expect(notice).toContainText(fr.problems.upstream_unavailable);
  await expect(notice).toContainText(fr.lastAnswer('|').split('|')[0] ?? '');
  await expect(page.locator('tbody tr')).toHaveCount(25);
  await page.route(part, (route) => route.fulfill(away));
  const again = page.waitForResponse((answer) => answer.url().includes('/hydrorisk?'));
  await notice.getByRole('button', { name: fr.tryAgain }).click();
  await again;
  await expect(notice).toBeVisible();
  await expect(page.locator('tbody tr')).toHaveCount(25);
  await page.unrouteAll({ behavior: 'wait' });
  await notice.getByRole('button', { name: fr.tryAgain }).click();
  await expect(notice).toHaveCount(0);
  await expect(page.locator('tbody tr')).toHaveCount(25);
});

test('every curl recipe of the reference runs', async ({ site }) => {
  const page = await site.as(person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await makeKey(page, title);
  await page.goto('/docs');
  await expect(page.locator('[data-try]').first()).toBeAttached();
  const recipes = await page.locator('[data-recipe]').evaluateAll((all) => all.map((one) => ({ name: one.getAttribute('data-recipe') ?? '', text: one.textContent ?? '' })));
  expect(recipes.map(({ name }) => name).sort()).toEqual(Object.keys(fr.docs.recipe).sort());
  const codesAreText = expect.stringContaining('dtype={"dept": str, "deptCode": str}');
  expect(await page.locator('#recipes code').allTextContents()).toEqual([codesAreText, codesAreText]);
  const home = curlHome();
  const cwd = folder('recipes');
  for (const { name, text } of recipes) {
    const printed = await run('bash', ['-euo', 'pipefail', '-c', text], { cwd, env: { CURL_HOME: home, WATER_KEY: key } });
    const result = { walk: 'analyses.ndjson', etag: 'stress.json' }[name];
    expect((result === undefined ? printed : readFileSync(join(cwd, result), 'utf8')).length, name).toBeGreaterThan(40);
  }
  await openKeys(page, 'acme');
  await revokeKey(page, title);
});

test('a request tried in the reference carries the pasted key and no cookie', async ({ site }) => {
  const page = await site.profile();
  await signIn(page, person('acme'));
  await openKeys(page, 'acme');
  const title = freshTitle();
  const key = await makeKey(page, title);
  await page.goto('/docs');
  const box = page.locator('[data-try="/api/v1/stress"]');
  await box.locator('summary').click();
  await box.getByLabel(fr.docs.tryKey).fill(key);
  await box.getByLabel('dept', { exact: true }).fill('34');
  const sent = page.waitForRequest((request) => request.url().includes('/api/v1/stress'));
  await box.getByRole('button', { name: fr.docs.send }).click();
  const headers = await (await sent).allHeaders();
  expect(headers['cookie']).toBeUndefined();
  await expect(box.locator('.state.ok')).toHaveText('200');
  await expect(box.getByText('"dept": "34"').first()).toBeVisible();
  await openKeys(page, 'acme');
  await revokeKey(page, title);
});

test('each dataset’s source, date and licence are told', async ({ site }) => {
  const page = await site.as(person('acme'));
  await page.goto('/sources');
  await expect(page.getByRole('row', { name: new RegExp(fr.sources.names.vigieau) })).toContainText('Licence Ouverte 2.0');
  await expect(page.getByRole('row', { name: new RegExp(fr.sources.names.stress) })).toContainText(fr.sources.synthetic);
});
