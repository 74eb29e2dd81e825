//! The portal's next version is rolled out, and the one before again, while signed-in readers look at its pages:
//! fault 46 on a real Deployment, behind the real ingress.
import type { Page } from '@playwright/test';
import { person, renewAllowances, setting } from './cluster';
import { declaredVersion, podNames, rollTo } from './portal';
import { expect, test, type Site } from './site';

/** Who reads: each signs in once, and reads in four tabs. */
const SIGNED_IN = ['acme', 'acme', 'globex', 'globex', 'initech'];
const TABS = 4;
/** Between two things that a reader does. A session may ask 240 times a minute. */
const PACE = 1500;

/** A tab that asks all the time. What fails is kept. */
class Reader {
  asked = 0;
  readonly failed: string[] = [];
  private readonly steps: (() => Promise<void>)[];

  constructor(
    private readonly page: Page,
    account: string,
  ) {
    page.on('response', (answer) => {
      if (!answer.url().startsWith(setting('WATER_PORTAL_URL'))) return;
      // The browser keeps assets itself.
      if (!answer.url().includes('/assets/')) this.asked += 1;
      if (answer.status() >= 400) this.failed.push(`${answer.status()} ${answer.url()}`);
    });
    page.on('requestfailed', (request) => {
      // What a page still waits for when its reader goes on to the next one is given up.
      const why = request.failure()?.errorText ?? '';
      if (why !== 'net::ERR_ABORTED') this.failed.push(`${why} ${request.url()}`);
    });
    const of = `/account/v1/accounts/${account}`;
    const data = account === 'initech' ? [] : [`${of}/quota`, `${of}/stress?dept=34`, `${of}/sources`];
    const pages = [`/a/${account}/settings/api`, `/a/${account}/map`, '/docs', `/a/${account}/history`, '/sources'];
    const answers = ['/account/v1/session', `${of}/keys`, `${of}/usage?days=7`, ...data];
    this.steps = [...pages.map((path) => () => this.look(path)), ...answers.map((path) => () => this.ask(path))];
  }

  /** Goes on, beginning with this step, until `over` says so or something fails. */
  async read(first: number, over: () => boolean): Promise<void> {
    try {
      for (let step = first; !over(); step += 1) {
        const paced = new Promise((resolve) => setTimeout(resolve, PACE));
        await this.steps[step % this.steps.length]?.();
        await paced;
      }
    } catch (error) {
      this.failed.push(String(error));
    }
  }

  /** A page is whole and knows its reader. */
  private async look(path: string): Promise<void> {
    await this.page.goto(path);
    await expect(this.page.locator('.menu > summary')).toBeVisible();
    await expect(this.page.locator('main h1')).toBeVisible();
  }

  private async ask(path: string): Promise<void> {
    const status = await this.page.evaluate(async (path) => {
      const answer = await fetch(path);
      await answer.arrayBuffer();
      return answer.status;
    }, path);
    expect(status, path).toBe(200);
    const session = await this.page.evaluate(async () => (await (await fetch('/account/v1/session')).json()) as object);
    expect(session).toMatchObject({ signedIn: true });
  }
}

async function twentyReaders(site: Site): Promise<Reader[]> {
  const readers: Reader[] = [];
  for (const account of SIGNED_IN) {
    const first = await site.as(person(account));
    for (let tab = 0; tab < TABS; tab += 1) {
      const page = tab === 0 ? first : await first.context().newPage();
      // Any page of the portal: the first step may be a question that a page asks.
      await page.goto('/docs');
      readers.push(new Reader(page, account));
    }
  }
  return readers;
}

test('a new version is rolled out under twenty signed-in readers, and back, and no request of theirs fails', async ({ site }) => {
  test.setTimeout(1_200_000);
  const [version, next] = [await declaredVersion(), setting('WATER_NEXT_TAG')];
  expect(next).not.toBe(version);
  const readers = await twentyReaders(site);
  expect(readers).toHaveLength(20);
  const asked = () => readers.reduce((sum, reader) => sum + reader.asked, 0);
  const failed = () => readers.flatMap((reader) => reader.failed);
  let over = false;
  // Together they read more data than an account may.
  const reading = [
    ...readers.map((reader, first) => reader.read(first, () => over)),
    (async () => {
      while (!over) {
        await Promise.all([renewAllowances('acme'), renewAllowances('globex')]);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    })(),
  ];
  try {
    for (const to of [next, version]) {
      const [before, pods] = [asked(), await podNames()];
      const seconds = await rollTo(to);
      console.log(`rolled out to ${to} in ${seconds.toFixed(1)} s: ${asked() - before} requests, ${failed().length} failed`);
      expect(failed()).toEqual([]);
      expect((await podNames()).filter((name) => pods.includes(name))).toEqual([]);
      expect(asked() - before).toBeGreaterThan(20 * readers.length);
      // Each of them meets the pods that are there now.
      const each = readers.map((reader) => reader.asked);
      await expect.poll(() => readers.filter((reader, index) => reader.asked < (each[index] ?? 0) + 10).length).toBe(0);
    }
  } finally {
    over = true;
    await Promise.allSettled(reading);
    // Whatever came of it: the next test finds the version that was there before.
    await rollTo(version);
  }
  console.log(`${asked()} requests in all, ${failed().length} failed`);
  expect(failed()).toEqual([]);
});
