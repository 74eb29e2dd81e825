//! The keys page as a reader uses it.
import type { Locator, Page } from '@playwright/test';
import { ask, expect } from './reader';

const DIALOG = 'dialog[open]';

/** The row of a key. */
export function row(page: Page, title: string): Locator {
  return page.getByRole('table', { name: 'Your keys' }).getByRole('row').filter({ hasText: title });
}

/** Goes as far as the text of a new key, which opens nothing yet. */
export async function makeText(page: Page, title: string): Promise<string> {
  await page.getByRole('main').getByRole('button', { name: 'Create a key' }).first().click();
  const dialog = page.locator(DIALOG);
  await dialog.getByLabel('Name').fill(title);
  await dialog.getByRole('button', { name: 'Make the key' }).click();
  return shownText(page);
}

/** Goes as far as the text that is to replace a key's. */
export async function makeReplacement(page: Page, title: string, overlap: string): Promise<string> {
  await row(page, title).getByRole('button', { name: `Replace “${title}”` }).click();
  const dialog = page.locator(DIALOG);
  await dialog.getByLabel('The old key works on for').selectOption(overlap);
  await dialog.getByRole('button', { name: 'Make the key' }).click();
  return shownText(page);
}

async function shownText(page: Page): Promise<string> {
  const text = await page.locator(DIALOG).getByTestId('key-text').textContent();
  expect(text?.trim()).toMatch(/^wdk_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
  return text!.trim();
}

/** Says that the text is saved, and waits until it works at every gate. */
export async function publish(page: Page): Promise<void> {
  const dialog = page.locator(DIALOG);
  await dialog.getByRole('button', { name: 'I have saved it' }).click();
  await expect(dialog.getByText('Works at every gate')).toBeVisible();
  await dialog.getByRole('button', { name: 'Close', exact: true }).click();
  await expect(dialog).toBeHidden();
}

/** Makes a key with this title, to its end. */
export async function makeKey(page: Page, title: string): Promise<string> {
  const text = await makeText(page, title);
  await publish(page);
  return text;
}

/** Says yes to the question of an open dialog. */
export async function confirm(page: Page, action: string): Promise<void> {
  await page.locator(DIALOG).getByRole('button', { name: action, exact: true }).click();
}

/** Revokes a key, and waits until every gate has acknowledged. */
export async function revoke(page: Page, title: string): Promise<void> {
  await row(page, title).getByRole('button', { name: `Revoke “${title}”` }).click();
  await confirm(page, 'Revoke');
  await expect(row(page, title)).toHaveCount(0);
}

/** The keys that an account has, as the portal answers. */
export async function keysOf(page: Page, account: string): Promise<{ title: string; keyId: string; state: string }[]> {
  return (await ask(page, `/account/v1/accounts/${account}/keys`)).json.data;
}
