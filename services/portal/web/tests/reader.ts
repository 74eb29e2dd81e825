//! A reader at the portal: a browser of their own, signed in by clicks at the real provider. After each test there must be
//! nothing on the console but what the test has said that it provokes.
import { test as base, expect, type BrowserContext, type Page } from '@playwright/test';
import { cluster, type Person } from './cluster';

export type Reader = {
  /** A page of a browser that nobody else uses. Its profile stays in the folder that is searched for keys. */
  visit: (path: string) => Promise<Page>;
  /** The same, signed in by way of this path. */
  signIn: (person: Person, path?: string) => Promise<Page>;
  /** The test provokes answers with this status, which Chromium writes to the console. */
  provokes: (status: number) => void;
};

export const test = base.extend<{ reader: Reader }>({
  reader: async ({ playwright }, use, info) => {
    const contexts: BrowserContext[] = [];
    const said: string[] = [];
    const provoked = new Set<string>();
    const visit = async (path: string): Promise<Page> => {
      const profile = `${cluster.folder}/profiles/${info.testId}-${contexts.length}`;
      const { launchOptions, ...options } = info.project.use;
      const context = await playwright.chromium.launchPersistentContext(profile, { ...launchOptions, ...options });
      contexts.push(context);
      context.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) said.push(message.text());
      });
      context.on('weberror', (error) => said.push(String(error.error())));
      const page = context.pages()[0] ?? (await context.newPage());
      await page.goto(cluster.portal + path);
      return page;
    };
    const signIn = async (person: Person, path = '/'): Promise<Page> => {
      const page = await visit(path);
      await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
      await typeName(page, person);
      return page;
    };
    await use({ visit, signIn, provokes: (status) => provoked.add(`status of ${status} `) });
    const unexpected = said.filter((line) => ![...provoked].some((status) => line.includes(status)));
    await Promise.all(contexts.map((context) => context.close()));
    expect(unexpected, 'errors and warnings on the console').toEqual([]);
  },
});

/** Signs in at the provider, whose page this is, and comes back. */
export async function typeName(page: Page, person: Person): Promise<void> {
  await page.locator('input[name=login]').fill(person.email);
  await page.locator('input[name=password]').fill(person.password);
  await page.locator('button[type=submit]').click();
  await page.waitForURL(`${cluster.portal}/**`);
  await expect(page.getByRole('banner').getByText(person.name)).toBeAttached();
}

/** The status of a request that the page itself sends. */
export function ask(page: Page, path: string, method = 'GET', body?: unknown): Promise<{ status: number; json: any }> {
  return page.evaluate(
    async ([path, method, body]) => {
      const answer = await fetch(path, {
        method,
        ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
      });
      return { status: answer.status, json: await answer.json().catch(() => undefined) };
    },
    [path, method, body === undefined ? undefined : JSON.stringify(body)] as const,
  );
}

export { expect };
