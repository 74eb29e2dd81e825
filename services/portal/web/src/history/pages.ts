//! Reads a history: its newest rows for the plot, its pages for the table, all of it for a file.
import { ask, json, of, Problem } from '../api';

export type Kind = 'analyses' | 'audits';
/** One analysis or audit, in the same words. */
export type Entry = { id: string; company: string; sector: string; dept: string; score: number; rating: string; at: string };
export type Page = { total: number; offset: number; entries: Entry[] };

/** Rows of a page of JSON, at most. */
export const PAGE = 100;
/** Rows of a page of all rows: as many as the service gives, or fewer while it is slow. */
const LARGEST = 5000;
const SMALLEST = 500;
/** Refusals of a page after which it is given up: minutes at the usual pause, longer than a store changes over. */
const PATIENCE = 100;
/** Rows that are plotted, at most. */
const NEWEST = 1000;

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

/** Up to so many rows all of them are read in one page by id: ten pages by date would use up a reader's minute. */
const FEW = 5000;

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
    if (total > PAGE && total <= FEW) {
      await walk(account, kind, signal, (entries) => entries.forEach((one) => known.set(one.id, one)));
      told(total, [...known.values()].sort(newestFirst).slice(0, NEWEST));
      return;
    }
  }
  if (total === Infinity) told(0, []);
}

/** As the API orders pages: by time, then by id, both descending. */
function newestFirst(a: Entry, b: Entry): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}

/** All rows, page by page over their ids; waits as told when there are too many requests. */
export async function walk(account: string, kind: Kind, signal: AbortSignal, each: (entries: Entry[]) => void): Promise<void> {
  const first = `${of(account, RESOURCES[kind])}?limit=${LARGEST}`;
  let next: string | undefined = first;
  let refused = 0;
  while (next !== undefined) {
    const answer: Response | Problem = await patiently(next, signal);
    if (answer instanceof Problem) {
      if (answer.status !== 503) continue;
      if (++refused === PATIENCE) throw answer;
      // The first time another page of the account may have been under way.
      if (refused > 1) next = halved(next);
      continue;
    }
    refused = 0;
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

/** The path of the same page with half of the rows: a slow database reads these in time. */
function halved(path: string): string {
  return path.replace(/limit=(\d+)/, (_, limit) => `limit=${Math.max(SMALLEST, Math.floor(Number(limit) / 2))}`);
}

/** The answer, or the refusal after the pause that a 429 or 503 asks for. */
async function patiently(path: string, signal: AbortSignal): Promise<Response | Problem> {
  try {
    return await ask(path, { accept: 'application/x-ndjson', signal });
  } catch (error) {
    if (!(error instanceof Problem) || (error.status !== 429 && error.status !== 503)) throw error;
    const wait = error.retryAfter;
    if (wait === 0 || wait > 60) throw error;
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    if (signal.aborted) throw error;
    return error;
  }
}
