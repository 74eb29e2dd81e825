//! Talks to the portal's JSON API, `/account/v1`, and tells what went wrong as a `Problem`.

export type Role = 'manager' | 'viewer';
/** `maxKeyDays`: the most days that a key may live; none where that is not bounded. */
export type Account = { id: string; plan: string; access: boolean; role: Role; maxKeyDays?: number | null };
export type SignedIn = {
  signedIn: true;
  name: string | null;
  subject: string;
  expiresAt: string;
  keyPrefix: string;
  accounts: Account[];
};
export type Session = SignedIn | { signedIn: false; keyPrefix?: string };

export type KeyState =
  | 'publishing'
  | 'active'
  | 'suspended'
  | 'not_yet_valid'
  | 'expired'
  | 'plan_without_access'
  | 'revoking'
  | 'stalled';
export type Key = {
  name: string;
  title: string;
  keyId: string;
  plan: string;
  state: KeyState;
  reason?: string | null;
  madeBy: 'portal' | 'cluster';
  requestedBy?: string | null;
  createdAt?: string | null;
  expiresAt?: string | null;
  lastUsedAt?: string | null;
  previous?: { keyId: string; retiresAt: string; lastUsedAt?: string | null } | null;
  waitingGates?: number | null;
};
/** `keysElsewhere`: the platform may hold keys of the account that are not listed. */
export type KeyList = { count: number; data: Key[]; keysElsewhere?: boolean };

/** What remains of one window; `opensInSeconds` until its next slot opens. */
export type Window = { limit: number; remaining: number; opensInSeconds: number };
export type Quota = { asOf: string; minute: Window; day: Window };
export type UsageDay = { day: string; accepted: number; limited: number };

export type StressRecord = { dept: string; name: string; stressIndex: number; level: string; levelSource: string; levelAsOf: string };
export type RiskRecord = {
  dept: string;
  name: string;
  flood: number;
  drought: number;
  overall: number;
  rating: string;
  updatedAt: string;
};
export type List<T> = { count: number; updatedAt: string; data: T[] };
export type Source = {
  dataset: string;
  source: string | null;
  sourceUrl: string | null;
  licence: string | null;
  asOf: string | null;
  loadedAt: string;
  records: number;
  synthetic: boolean;
  derivedLevels: string[];
  keptLevels: string[];
};
export type SourceList = { data: Source[] };

/** An answer that is not the one asked for: RFC 9457's problem, or `network` without an answer. Its `detail` is in the page's language. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    readonly field: string | undefined,
    readonly requestId: string | undefined,
    readonly retryAfter: number,
    readonly detail?: string,
  ) {
    super(code);
  }
}

/** Told to the window when an answer says that the session has ended. */
export const SESSION_ENDED = 'session-ended';

const BASE = '/account/v1';
let language: string | undefined;

/** Asks for problems in this language from now on. */
export function askIn(lang: string): void {
  language = lang;
}

/** The path of an account's resource. */
export function of(account: string, ...segments: string[]): string {
  return ['/accounts', account, ...segments.map(encodeURIComponent)].join('/');
}

/** What is asked, and how. `poll`: the page asks by itself, which is no sign of its reader and keeps no session alive. */
export type Asking = { method?: string; body?: unknown; accept?: string; signal?: AbortSignal; poll?: boolean };

/** Asks once. Throws a `Problem` for every answer that is not 2xx. */
export async function ask(path: string, options: Asking = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? 'application/json' };
  if (language) headers['Accept-Language'] = language;
  if (options.poll) headers['X-Poll'] = '1';
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  let answer: Response;
  try {
    answer = await fetch(BASE + path, {
      method: options.method ?? 'GET',
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
      credentials: 'same-origin',
      redirect: 'error',
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem('network', 0, undefined, undefined, 0);
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

/** The JSON that a path answers. */
export async function json<T>(path: string, options: Asking = {}): Promise<T> {
  return (await (await ask(path, options)).json()) as T;
}

async function problemOf(answer: Response): Promise<Problem> {
  const body: unknown = await answer.json().catch(() => ({}));
  const member = (name: string): string | undefined => {
    const value = (body as Record<string, unknown> | null)?.[name];
    return typeof value === 'string' ? value : undefined;
  };
  if (answer.status === 401) window.dispatchEvent(new Event(SESSION_ENDED));
  const retryAfter = Number(answer.headers.get('Retry-After') ?? 0) || 0;
  const field = member('field') ?? member('parameter');
  return new Problem(member('code') ?? 'internal', answer.status, field, member('requestId'), retryAfter, member('detail'));
}
