//! Waits until a key is what it was declared to be.
import { json, of, type Key, type KeyList } from '../api';

/** Between two looks at the list: a tenth of a second at first, five seconds at last. A key is active in some 0.2 s. */
export function pause(look: number): number {
  return Math.min(5000, 100 * 1.25 ** look);
}

/** Looks at the account's list until `done` says so; `undefined` when it was given up. */
export async function settle(
  account: string,
  name: string,
  done: (key: Key | undefined) => boolean,
  given: { signal: AbortSignal; seen: (list: KeyList) => void },
): Promise<Key | undefined> {
  for (let look = 0; !given.signal.aborted; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, pause(look)));
    if (given.signal.aborted) return undefined;
    const list = await json<KeyList>(of(account, 'keys'), { signal: given.signal, poll: true }).catch(() => undefined);
    if (!list) continue;
    given.seen(list);
    const key = list.data.find((one) => one.name === name);
    if (done(key)) return key;
  }
  return undefined;
}
