//! What every test has: browsers with profiles of their own, people who sign in by the provider's
//! form, and a watch over policy reports and console errors.
import { test as base, chromium, expect, type BrowserContext, type Locator, type Page } from '@playwright/test';
import { fr } from '../src/words/fr';
import { folder, renewAllowances, setting, type Person } from './cluster';

export type Look = { lang?: 'fr' | 'en'; scheme?: 'light' | 'dark'; width?: number };

/** Browsers of one test. All that goes wrong in them is kept until the end. */
export class Site {
  private readonly contexts: BrowserContext[] = [];
  private readonly wrong: string[] = [];
  private readonly provoked: RegExp[] = [];

  /** A browser with a fresh profile. */
  async browser(look: Look = {}): Promise<Page> {
    const args = [
      `--host-resolver-rules=${setting('WATER_HOST_RULES')}`,
      `--ignore-certificate-errors-spki-list=${setting('WATER_SPKI_FINGERPRINTS')}`,
    ];
    const context = await chromium.launchPersistentContext(folder('profile'), {
      executablePath: setting('WATER_CHROMIUM'),
      args,
      baseURL: setting('WATER_PORTAL_URL'),
      locale: look.lang === 'en' ? 'en-GB' : 'fr-FR',
      colorScheme: look.scheme ?? 'light',
      viewport: { width: look.width ?? 1280, height: 900 },
      permissions: ['clipboard-read', 'clipboard-write'],
    });
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
    page.on('pageerror', (error) => this.wrong.push(`script: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' && own(message.location().url)) this.wrong.push(`console: ${message.text()}`);
    });
  }

  /** Allows errors that the test provokes. */
  provokes(error: RegExp): void {
    this.provoked.push(error);
  }

  /** A browser in which this person has signed in by the provider's own form. */
  async as(person: Person, look: Look = {}): Promise<Page> {
    const page = await this.browser(look);
    await page.goto('/');
    await page.locator('main a[href^="/auth/sign-in"]').click();
    await fillProvidersForm(page, person);
    await page.waitForURL((address) => address.origin === setting('WATER_PORTAL_URL'));
    await expect(page.locator('.menu > summary')).toBeVisible();
    return page;
  }

  /** Ends the browsers; fails on every error that nobody provoked. */
  async end(): Promise<void> {
    for (const context of this.contexts) await context.close();
    const unexpected = this.wrong.filter((text) => !this.provoked.some((error) => error.test(text)));
    expect(unexpected, 'policy reports and console errors').toEqual([]);
  }
}

/** The sign-in page of the provider. */
export async function fillProvidersForm(page: Page, person: Person): Promise<void> {
  await page.locator('input[name=login]').fill(person.email);
  await page.locator('input[name=password]').fill(person.password);
  await page.locator('button[type=submit]').click();
}

export const test = base.extend<{ site: Site }>({
  site: async ({}, use) => {
    const site = new Site();
    await renewAllowances('acme');
    await use(site);
    await site.end();
  },
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
