//! What the reader chose and this browser keeps: language, theme, the last account.

/** A kept value, or `undefined`: storage may be switched off. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a value where the browser allows it. */
export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser without storage forgets the choice with the page.
  }
}
