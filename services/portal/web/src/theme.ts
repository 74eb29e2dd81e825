//! Light, dark, or as the system: a choice that this browser keeps.
import { keep, kept } from './preference';

export type Theme = 'auto' | 'light' | 'dark';

/** The reader's choice. */
export function theme(): Theme {
  const choice = kept('theme');
  return choice === 'light' || choice === 'dark' ? choice : 'auto';
}

/** Shows a theme, and keeps it. */
export function chooseTheme(choice: Theme): void {
  keep('theme', choice);
  showTheme();
}

/** Shows the kept theme. */
export function showTheme(): void {
  document.documentElement.dataset['theme'] = theme();
}
