//! Why a key stands as it does: words by the portal's reason, or by the key's state. Only the keys' page loads them.
import type { Key } from '../api';
import type { Lang } from '../language';

const fr = {
  publishing: 'Les passerelles de l’API l’apprennent.',
  stalled: 'Elle ne peut pas être publiée. L’administrateur de la plateforme peut dire pourquoi.',
  suspended: 'La plateforme l’a suspendue.',
  plan_without_access: 'Son plan ne donne pas accès à l’API.',
  revoking: 'Attend que chaque passerelle de l’API ait confirmé.',
  store_unavailable: 'Le registre des clés est indisponible. La publication se fera dès son retour.',
  plan_unknown: 'L’API n’a pas, ou plus, son plan.',
  account_not_bound: 'La plateforme n’admet pas ici les clés de ce compte.',
  namespace_not_admitted: 'La plateforme n’admet pas ici les clés de ce compte.',
  api_not_found: 'L’API à laquelle elle est destinée n’existe pas, ou plus.',
  api_mismatch: 'Elle nomme une autre API que celle où elle a été émise. Révoquez-la et créez-en une autre.',
  key_conflict: 'Une autre clé a la même empreinte. Révoquez celle-ci et créez-en une autre.',
  revoked_in_store: 'Elle a déjà été révoquée et ne vaut plus. Créez-en une autre.',
};

const en: typeof fr = {
  publishing: 'The API’s gates are being told.',
  stalled: 'It cannot be published. The platform’s administrator can tell why.',
  suspended: 'The platform has suspended it.',
  plan_without_access: 'Its plan has no access to the API.',
  revoking: 'Waits until every gate of the API has acknowledged.',
  store_unavailable: 'The register of keys is away. The key is published as soon as it is back.',
  plan_unknown: 'The API does not have its plan, or no longer.',
  account_not_bound: 'The platform does not admit keys of this account here.',
  namespace_not_admitted: 'The platform does not admit keys of this account here.',
  api_not_found: 'The API that it is for does not exist, or no longer.',
  api_mismatch: 'It names another API than the one where it was issued. Revoke it and create another.',
  key_conflict: 'Another key has the same fingerprint. Revoke this one and create another.',
  revoked_in_store: 'It was revoked before and is not accepted again. Create another.',
};

/** The words by state and by reason. */
export const REASONS = { fr, en };

/** The words for a key's reason, or those for its state where the reason has none. */
export function reasonText(lang: Lang, { reason, state }: Pick<Key, 'reason' | 'state'>): string | undefined {
  const known: Record<string, string> = REASONS[lang];
  // What ails the key directory is the platform's to know.
  const cause = reason?.startsWith('store_') ? 'store_unavailable' : (reason ?? state);
  return known[cause] ?? known[state];
}
