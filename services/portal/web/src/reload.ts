//! What to do when an asset of this page's version is gone: the page is loaded again, with all of another version.
import { lazy } from 'preact-iso';

/** Always of this name; the portal also answers it in place of a script that it does not have. */
const RELOAD = '/reload.js';

/** Loads the page again, as often as that script allows. */
export function loadAgain(): void {
  void import(/* @vite-ignore */ RELOAD);
}

/** A page whose script is asked for when it is first shown. */
export function later<P>(load: () => Promise<{ default: P }>): P {
  return lazy(async () => {
    try {
      const page = await load();
      if ('default' in page) return page;
      // It was `RELOAD`, which is at work.
    } catch {
      loadAgain();
    }
    return new Promise<never>(() => undefined);
  });
}
