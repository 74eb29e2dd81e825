//! Why a key stands as it does, in the reader's words.
import type { Key } from '../api';
import type { Words } from '../words/fr';

/** The words for a key's reason, or those for its state where the reason has none. */
export function reasonText(w: Words, { reason, state }: Pick<Key, 'reason' | 'state'>): string | undefined {
  const known: Record<string, string> = w.keys.reasons;
  // What ails the key directory is the platform's to know.
  const cause = reason?.startsWith('store_') ? 'store_unavailable' : (reason ?? state);
  return known[cause] ?? known[state];
}
