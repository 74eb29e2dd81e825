//! Reads a history: its newest rows for the plot, its pages for the table, all of it for a file.
import { ask, json, of, Problem } from '../api';

export type Kind = 'analyses' | 'audits';
/** One analysis or audit, in the same words. */
export type Entry = { id: string; company: string; sector: string; dept: string; score: number; rating: string; at: string };
export type Page = { total: number; offset: number; entries: Entry[] };

/** Rows of a page of JSON, at most. */
export const PAGE = 100;
/** Rows that are plotted, at most. */
export const NEWEST = 1000;

const RESOURCES = { analyses: 'hydrorisk', audits: 'conformite' } as const;

type Raw = {
  id: string;
  companyName: string;
  sectorCode: string;
  deptCode: string;
  globalScore?: number;
  score?: number;
  rating?: string;
  globalRating?: string;
  createdAt: string;
};

function entry(raw: Raw): Entry {
  return {
    id: raw.id,
    company: raw.companyName,
    sector: raw.sectorCode,
    dept: raw.deptCode,
    score: raw.globalScore ?? raw.score ?? 0,
    rating: raw.rating ?? raw.globalRating ?? '',
    at: raw.createdAt,
  };
}

/** One page, the newest first. */
export async function page(account: string, kind: Kind, offset: number, limit: number, signal: AbortSignal): Promise<Page> {
  const path = `${of(account, RESOURCES[kind])}?limit=${limit}&offset=${offset}`;
  const answer = await json<{ total: number; offset: number; data: Raw[] }>(path, { signal });
  return { total: answer.total, offset: answer.offset, entries: answer.data.map(entry) };
}

/** The newest rows, told after each page. New rows shift the pages: one seen twice counts once. */
export async function newest(account: string, kind: Kind, signal: AbortSignal, told: (total: number, entries: Entry[]) => void): Promise<void> {
  const known = new Map<string, Entry>();
  let total = Infinity;
  for (let offset = 0; offset < Math.min(total, NEWEST); offset += PAGE) {
    const part = await page(account, kind, offset, PAGE, signal);
    total = part.total;
    for (const one of part.entries) known.set(one.id, one);
    told(total, [...known.values()]);
    if (part.entries.length === 0) break;
  }
  if (total === Infinity) told(0, []);
}

/** All rows, page by page over their ids; waits as told when there are too many requests. */
export async function walk(account: string, kind: Kind, signal: AbortSignal, each: (entries: Entry[]) => void): Promise<void> {
  const first = `${of(account, RESOURCES[kind])}?limit=5000`;
  let next: string | undefined = first;
  while (next !== undefined) {
    const answer: Response | undefined = await patiently(next, signal);
    if (answer === undefined) continue;
    const text = await answer.text();
    each(
      text
        .split('\n')
        .filter((one) => one !== '')
        .map((one) => entry(JSON.parse(one) as Raw)),
    );
    const query: string | undefined = /<[^>?]*\?([^>]*)>;\s*rel="next"/.exec(answer.headers.get('Link') ?? '')?.[1];
    next = query === undefined ? undefined : `${of(account, RESOURCES[kind])}?${query}`;
  }
}

/** The answer, or `undefined` after the pause that a 429 or 503 asks for. */
async function patiently(path: string, signal: AbortSignal): Promise<Response | undefined> {
  try {
    return await ask(path, { accept: 'application/x-ndjson', signal });
  } catch (error) {
    const wait = error instanceof Problem && (error.status === 429 || error.status === 503) ? error.retryAfter : 0;
    if (wait === 0 || wait > 60) throw error;
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    if (signal.aborted) throw error;
    return undefined;
  }
}
