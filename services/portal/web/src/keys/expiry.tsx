//! When a key ends: 30 days, 90 days, one year, never, or a date, within what the portal allows.
import { useLanguage } from '../language';

export type Expiry = { choice: 'd30' | 'd90' | 'd365' | 'never' | 'date'; date: string };
/** The most days that a key may live; none where that is not bounded. */
export type Bound = number | null | undefined;

const DAYS = { d30: 30, d90: 90, d365: 365 } as const;
const DAY = 86_400_000;
/** How far a browser's clock may be ahead of the portal's, in milliseconds. */
const AHEAD = 600_000;

/** The latest end that the portal will take, in milliseconds since the epoch. */
function latest(bound: Bound, now: number): number {
  return bound == null ? Infinity : now + bound * DAY - AHEAD;
}

function offered(bound: Bound): Expiry['choice'][] {
  const spans = (['d30', 'd90', 'd365'] as const).filter((span) => bound == null || DAYS[span] <= bound);
  return bound == null ? [...spans, 'never', 'date'] : [...spans, 'date'];
}

function isoDay(at: number): string | undefined {
  // Date fields take ISO 8601, in which Swedish dates are written.
  return at === Infinity ? undefined : new Date(at).toLocaleDateString('sv');
}

/** What a form begins with: one year, or the longest span within the bound. */
export function firstExpiry(bound: Bound, now: number): Expiry {
  const spans = offered(bound).filter((choice) => choice in DAYS);
  return { choice: spans.at(-1) ?? 'date', date: isoDay(latest(bound, now)) ?? '' };
}

/** The word for what is wrong with a choice. */
export function expiryRefusal({ choice, date }: Expiry, bound: Bound, now: number): 'expiryWrong' | 'expiryBeyond' | undefined {
  if (choice !== 'date') return undefined;
  if (!(Date.parse(`${date}T23:59:59`) > now)) return 'expiryWrong';
  return Date.parse(`${date}T00:00:00`) > latest(bound, now) ? 'expiryBeyond' : undefined;
}

/** The moment that was chosen and is not refused, at most the latest one; `null` for never. */
export function expiresAt({ choice, date }: Expiry, bound: Bound, now: number): string | null {
  const chosen = choice === 'never' ? Infinity : choice === 'date' ? Date.parse(`${date}T23:59:59`) : now + DAYS[choice] * DAY;
  const end = Math.min(chosen, latest(bound, now));
  return end === Infinity ? null : new Date(end).toISOString();
}

/** The field of a form. */
export function ExpiryField(props: { value: Expiry; set: (value: Expiry) => void; bound: Bound; wrong: string | undefined }) {
  const { w } = useLanguage();
  const { value, set, bound, wrong } = props;
  const told = [bound == null ? '' : 'expiry-hint', wrong === undefined ? '' : 'expiry-wrong'].join(' ').trim() || undefined;
  return (
    <div class="field">
      <label for="expiry">{w.keys.expiryLabel}</label>
      <div class="row">
        <select
          id="expiry"
          value={value.choice}
          aria-describedby={told}
          onChange={(event) => set({ ...value, choice: event.currentTarget.value as Expiry['choice'] })}
        >
          {offered(bound).map((choice) => (
            <option key={choice} value={choice}>
              {w.keys.expiry[choice]}
            </option>
          ))}
        </select>
        {value.choice === 'date' && (
          <span>
            <label class="hidden" for="expiry-date">
              {w.keys.expiryDate}
            </label>
            <input
              id="expiry-date"
              type="date"
              value={value.date}
              min={isoDay(Date.now())}
              max={isoDay(latest(bound, Date.now()))}
              aria-invalid={wrong !== undefined}
              aria-describedby={told}
              onInput={(event) => set({ ...value, date: event.currentTarget.value })}
            />
          </span>
        )}
      </div>
      {bound != null && (
        <p class="hint" id="expiry-hint">
          {w.keys.expiryBound(bound)}
        </p>
      )}
      {wrong !== undefined && (
        <p class="wrong" id="expiry-wrong" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}
