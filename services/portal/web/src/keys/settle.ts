//! Waits until a key is what it was declared to be.
import { json, of, Problem, type Key, type KeyList } from '../api';

/** Between two looks at the list: a tenth of a second at first, five seconds at last. A key is active in some 0.2 s. */
export function pause(look: number): number {
  return Math.min(5000, 100 * 1.25 ** look);
}

/** Who waits: `seen` gets each list with the key in it, `missed` each look that failed and is taken again. */
export type Watcher = {
  signal: AbortSignal;
  seen: (list: KeyList, key: Key | undefined) => void;
  missed?: (problem: Problem) => void;
};

/**
 * Looks at the account's list until `done` says so; `undefined` when it was given up.
 * Throws the `Problem` of a look that another one would not help: the session has ended, or lacks the account.
 */
export async function settle(account: string, name: string, done: (key: Key | undefined) => boolean, watcher: Watcher): Promise<Key | undefined> {
  const { signal, seen, missed } = watcher;
  for (let look = 0; !signal.aborted; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, pause(look)));
    if (signal.aborted) return undefined;
    try {
      const list = await json<KeyList>(of(account, 'keys'), { signal, poll: true });
      const key = list.data.find((one) => one.name === name);
      seen(list, key);
      if (done(key)) return key;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof Problem) || [401, 403, 404].includes(error.status)) throw error;
      missed?.(error);
    }
  }
  return undefined;
}
