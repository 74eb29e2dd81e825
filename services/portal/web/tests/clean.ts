//! What is asked of everything that can be seen: no finding of axe-core, and no sideways scrolling.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, type Page } from '@playwright/test';

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

/** How many pixels the page, or the dialog that is open, is wider than its window. */
function overflow(page: Page): Promise<number> {
  return page.evaluate(() => {
    const dialogs = [...document.querySelectorAll('dialog[open]')].map((one) => one.scrollWidth - one.clientWidth);
    return Math.max(document.documentElement.scrollWidth - innerWidth, ...dialogs);
  });
}

/** Fails for every finding in what is shown now; `what` names it. */
export async function expectClean(page: Page, what: string): Promise<void> {
  expect.soft(await findings(page), what).toEqual([]);
  expect.soft(await overflow(page), `${what}: pixels beyond the window`).toBeLessThanOrEqual(0);
}
