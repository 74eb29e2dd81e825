//! What every test has: browsers that know nothing of each other, people who sign in by the provider's form, and a watch
//! over policy reports and console errors.
import { test as base, expect, type Browser, type BrowserContext, type BrowserContextOptions, type Cookie, type Locator, type Page, type Request } from '@playwright/test';
import config from '../playwright.config';
import { fr } from '../src/words/fr';
import { folder, renewAllowances, setting, type Person } from './cluster';
import { Release } from './portal';

export type Look = { lang?: 'fr' | 'en'; scheme?: 'light' | 'dark'; width?: number };

/** Cookies of portal and provider that a worker's tests share, as long as a session's requests of a minute allow. */
type Session = { cookies: Cookie[]; tests: number };
const TESTS_OF_A_SESSION = 4;

/** What went wrong in a browser, and the address of what could not be loaded. */
type Problem = { text: string; url: string };
/** Polls that may fail in a test, as on a machine that stood still: each is followed by another one. */
const FAILED_POLLS = 2;

/** Browsers of one test. All that goes wrong in them is kept until the end. */
export class Site {
  private readonly contexts: BrowserContext[] = [];
  private readonly wrong: Problem[] = [];
  /** Addresses of polls that failed. */
  private readonly failedPolls = new Set<string>();
  private readonly provoked: RegExp[] = [];

  constructor(
    private readonly chromium: Browser,
    private readonly sessions: Map<string, Session>,
  ) {}

  /** A browser that knows nothing yet, and keeps nothing on the disk. */
  async browser(look: Look = {}): Promise<Page> {
    return this.open(await this.chromium.newContext(options(look)));
  }

  /** A browser that keeps its profile on the disk, which is searched for keys afterwards. */
  async profile(): Promise<Page> {
    const type = this.chromium.browserType();
    return this.open(await type.launchPersistentContext(folder('profile'), { ...options({}), ...LAUNCH }));
  }

  private async open(context: BrowserContext): Promise<Page> {
    this.contexts.push(context);
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.effectiveDirective} ${event.blockedURI}`));
    });
    context.on('page', (page) => this.watch(page));
    const page = context.pages()[0] ?? (await context.newPage());
    this.watch(page);
    return page;
  }

  private readonly watched = new Set<Page>();

  private watch(page: Page): void {
    if (this.watched.has(page)) return;
    this.watched.add(page);
    const own = (address: string) => address === '' || address.startsWith(setting('WATER_PORTAL_URL')) || address.startsWith('blob:');
    page.on('pageerror', (error) => this.wrong.push({ text: `script: ${error.message}`, url: '' }));
    page.on('console', (message) => {
      const { url } = message.location();
      if (message.type() === 'error' && own(url)) this.wrong.push({ text: `console: ${message.text()}`, url });
    });
    const failed = (request: Request) => request.headers()['x-poll'] === '1' && this.failedPolls.add(request.url());
    // A fault of the portal's own is 500.
    page.on('response', (answer) => answer.status() > 501 && failed(answer.request()));
    page.on('requestfailed', failed);
  }

  /** Allows errors that the test provokes. */
  provokes(error: RegExp): void {
    this.provoked.push(error);
  }

  /** A browser with a session of this person's, which an earlier test may have had before. It shows nothing yet. */
  async as(person: Person, look: Look = {}): Promise<Page> {
    const known = this.sessions.get(person.email);
    const page = await this.browser(look);
    if (known && known.tests < TESTS_OF_A_SESSION) {
      known.tests += 1;
      await page.context().addCookies(known.cookies);
      return page;
    }
    await signIn(page, person);
    this.sessions.set(person.email, { cookies: await page.context().cookies(), tests: 1 });
    return page;
  }

  /** A browser in which this person has signed in by the provider's own form, with a session of its own. */
  async signedIn(person: Person): Promise<Page> {
    const page = await this.browser();
    await signIn(page, person);
    return page;
  }

  /** Ends the browsers; fails on every error that nobody provoked, but for some failed polls, which are printed. */
  async end(): Promise<void> {
    for (const context of this.contexts) await context.close();
    const unprovoked = this.wrong.filter(({ text }) => !this.provoked.some((error) => error.test(text)));
    const isOfPoll = ({ text, url }: Problem) => text.startsWith('console: Failed to load') && this.failedPolls.has(url);
    const excused = unprovoked.filter(isOfPoll).slice(0, FAILED_POLLS);
    for (const { text, url } of excused) console.log(`a poll of ${url} failed: ${text}`);
    const unexpected = unprovoked.filter((one) => !excused.includes(one));
    expect(unexpected.map(({ text }) => text), 'policy reports and console errors').toEqual([]);
  }
}

/** Chromium's settings, as those of the browser that tests share. */
const LAUNCH = config.use?.launchOptions ?? {};

/** What a browser looks like to pages. */
function options(look: Look): BrowserContextOptions {
  return {
    baseURL: setting('WATER_PORTAL_URL'),
    locale: look.lang === 'en' ? 'en-GB' : 'fr-FR',
    colorScheme: look.scheme ?? 'light',
    viewport: { width: look.width ?? 1280, height: 900 },
    permissions: ['clipboard-read', 'clipboard-write'],
  };
}

/** The sign-in page of the provider. */
export async function fillProvidersForm(page: Page, person: Person): Promise<void> {
  await page.locator('input[name=login]').fill(person.email);
  await page.locator('input[name=password]').fill(person.password);
  await page.locator('button[type=submit]').click();
}

/** Signs in by the provider's own form. */
export async function signIn(page: Page, person: Person): Promise<void> {
  await page.goto('/');
  await page.locator('main a[href^="/auth/sign-in"]').click();
  await fillProvidersForm(page, person);
  await page.waitForURL((address) => address.origin === setting('WATER_PORTAL_URL'));
  await expect(page.locator('.menu > summary')).toBeVisible();
}

export const test = base.extend<{ site: Site; release: Release }, { sessions: Map<string, Session> }>({
  sessions: [async ({}, use) => use(new Map()), { scope: 'worker' }],
  site: async ({ browser, sessions }, use) => {
    const site = new Site(browser, sessions);
    await renewAllowances('acme');
    await use(site);
    await site.end();
  },
  // What comes after `use` runs however the test ended, at its timeout too; what comes before waits for what a failed
  // test has put back.
  release: [
    async ({}, use) => {
      const release = await Release.asInstalled();
      await use(release);
      await release.putBack();
    },
    { timeout: 900_000 },
  ],
});

export { expect };

const keys = fr.keys;
let counted = 0;

/** A name that no other key of this run has. */
export function freshTitle(): string {
  counted += 1;
  return `Essai ${process.pid}-${Date.now() % 1e6}-${counted}`;
}

/** The keys' page of an account. */
export async function openKeys(page: Page, account: string): Promise<void> {
  await page.goto(`/a/${account}/settings/api`);
  await expect(page.getByRole('heading', { level: 1, name: keys.title })).toBeVisible();
}

/** The row of a key. */
export function row(page: Page, title: string): Locator {
  return page.locator('tr[data-key]').filter({ hasText: title });
}

/** The dialog that is open. */
export function dialog(page: Page): Locator {
  return page.locator('dialog[open]');
}

/** The text that the open dialog shows. */
export async function shownText(page: Page): Promise<string> {
  return (await dialog(page).getByTestId('key-text').innerText()).trim();
}

/** Closes the dialog that says how a change ended. */
export async function closeDialog(page: Page): Promise<void> {
  await dialog(page).getByRole('button', { name: fr.close }).click();
  await expect(dialog(page)).toHaveCount(0);
}

/** Says "I have saved it" and waits until every gate knows the key. */
export async function publish(page: Page): Promise<void> {
  await dialog(page).getByRole('button', { name: keys.saved }).click();
  await expect(dialog(page).locator('.state.ok')).toBeVisible();
  await closeDialog(page);
}

/** Opens the form for a new key, with this name in it. */
export async function openForm(page: Page, title: string): Promise<void> {
  await page.getByRole('button', { name: keys.create }).first().click();
  await dialog(page).getByLabel(keys.titleLabel).fill(title);
}

/** Has the dialog show the text of a new key; answers the text, which the portal does not know yet. */
export async function newText(page: Page, title: string): Promise<string> {
  await openForm(page, title);
  await dialog(page).getByRole('button', { name: keys.make }).click();
  return shownText(page);
}

/** The same for the text that replaces a key's after this overlap. */
export async function nextText(page: Page, title: string, overlap: keyof typeof keys.overlap): Promise<string> {
  await row(page, title).getByRole('button', { name: keys.rotateLabel(title) }).click();
  await dialog(page).getByLabel(keys.overlapLabel).selectOption(overlap);
  await dialog(page).getByRole('button', { name: keys.make }).click();
  return shownText(page);
}

/** Makes a key by the dialog; answers its text. */
export async function makeKey(page: Page, title: string): Promise<string> {
  const text = await newText(page, title);
  await publish(page);
  return text;
}

/** Replaces a key by the dialog, with this overlap; answers the new text. */
export async function replaceKey(page: Page, title: string, overlap: keyof typeof keys.overlap): Promise<string> {
  const text = await nextText(page, title, overlap);
  await publish(page);
  return text;
}

/** Revokes a key by the dialog, and waits until it has left the list. */
export async function revokeKey(page: Page, title: string): Promise<void> {
  await row(page, title).getByRole('button', { name: keys.revokeLabel(title) }).click();
  await dialog(page).getByRole('button', { name: keys.revoke }).click();
  await expect(row(page, title)).toHaveCount(0);
}
