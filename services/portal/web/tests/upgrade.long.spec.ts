//! Another version is rolled out while signed-in readers look at the portal's pages: fault 46 on a real Deployment, behind
//! the real ingress. It stays; the whole-system tests roll back to the one before. A rollout that fails is taken back.
import type { Page } from '@playwright/test';
import { person, renewAllowances, setting } from './cluster';
import { podNames } from './portal';
import { expect, test, type Site } from './site';

/** Each signs in once. */
const SIGNED_IN = ['acme', 'acme', 'globex', 'globex', 'initech'];
/** Readers of a session: one goes from page to page, as many as two processors can draw beside a rollout; the others fetch. */
const READERS = 4;
/** Between two things that a reader does. A session may ask 240 times a minute. */
const PACE = 1500;

/** A signed-in reader that asks all the time. What fails is kept. */
abstract class Reader {
  asked = 0;
  readonly failed: string[] = [];
  private readonly steps: (() => Promise<void>)[];

  constructor(
    protected readonly page: Page,
    account: string,
  ) {
    const of = `/account/v1/accounts/${account}`;
    const data = account === 'initech' ? [] : [`${of}/quota`, `${of}/stress?dept=34`, `${of}/sources`];
    const pages = [`/a/${account}/settings/api`, `/a/${account}/map`, '/docs', `/a/${account}/history`, '/sources'];
    const answers = ['/account/v1/session', `${of}/keys`, `${of}/usage?days=7`, ...data];
    this.steps = [...pages.map((path) => () => this.look(path)), ...answers.map((path) => () => this.ask(path))];
  }

  /** Reads a page. */
  protected abstract look(path: string): Promise<void>;

  /** Reads data, and finds the session still signed in. */
  private async ask(path: string): Promise<void> {
    await this.fetch(path);
    expect(JSON.parse(await this.fetch('/account/v1/session'))).toMatchObject({ signedIn: true });
  }

  protected async fetch(path: string): Promise<string> {
    const { status, text } = await this.page.evaluate(async (path) => {
      const answer = await fetch(path);
      return { status: answer.status, text: await answer.text() };
    }, path);
    expect(status, path).toBe(200);
    return text;
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
}

/** A tab: its pages and all that they load. */
class Tab extends Reader {
  constructor(page: Page, account: string) {
    super(page, account);
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
  }

  /** A page is whole and knows its reader. */
  protected async look(path: string): Promise<void> {
    await this.page.goto(path);
    await expect(this.page.locator('.menu > summary')).toBeVisible();
    await expect(this.page.locator('main h1')).toBeVisible();
  }
}

/** Fetches from a page that stays. */
class Client extends Reader {
  protected async look(path: string): Promise<void> {
    await this.fetch(path);
  }

  protected override async fetch(path: string): Promise<string> {
    const text = await super.fetch(path);
    this.asked += 1;
    return text;
  }
}

async function twentyReaders(site: Site): Promise<Reader[]> {
  const readers: Reader[] = [];
  for (const account of SIGNED_IN) {
    const first = await site.signedIn(person(account));
    const second = await first.context().newPage();
    // Any page of the portal: the first step may be a question that a page asks.
    await Promise.all([first.goto('/docs'), second.goto('/docs')]);
    readers.push(new Tab(first, account));
    for (let more = 1; more < READERS; more += 1) readers.push(new Client(second, account));
  }
  return readers;
}

test('another version is rolled out under twenty signed-in readers, and no request of theirs fails', async ({
  site,
  release,
}) => {
  test.setTimeout(900_000);
  const next = setting('WATER_VERSIONS').split(' ').find((version) => version !== release.version) ?? '';
  expect(next, 'a version with images that is not declared').not.toBe('');
  const readers = await twentyReaders(site);
  expect(readers).toHaveLength(20);
  const failed = () => readers.flatMap((reader) => reader.failed);
  let over = false;
  // Together they read more data than an account may.
  const reading = [
    ...readers.map((reader, first) => reader.read(first, () => over)),
    (async () => {
      while (!over) {
        // One that fails is followed by another.
        await Promise.allSettled([renewAllowances('acme'), renewAllowances('globex')]);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    })(),
  ];
  try {
    const pods = await podNames();
    const before = readers.map((reader) => reader.asked);
    const seconds = await release.rollTo(next);
    const asked = readers.map((reader, index) => reader.asked - (before[index] ?? 0));
    console.log(`rolled out to ${next} in ${seconds.toFixed(1)} s: requests of each reader ${asked}, ${failed().length} failed`);
    expect(failed()).toEqual([]);
    expect((await podNames()).filter((name) => pods.includes(name))).toEqual([]);
    expect(Math.min(...asked)).toBeGreaterThanOrEqual(10);
    // Each of them meets the pods that are there now.
    const each = readers.map((reader) => reader.asked);
    await expect.poll(() => readers.filter((reader, index) => reader.asked < (each[index] ?? 0) + 10).length).toBe(0);
  } finally {
    over = true;
    await Promise.allSettled(reading);
  }
  expect(failed()).toEqual([]);
});
