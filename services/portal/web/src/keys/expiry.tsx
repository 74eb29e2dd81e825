//! When a key ends: 30 days, 90 days, one year, never, or a date.
import { useLanguage } from '../language';

export type Expiry = { choice: 'd30' | 'd90' | 'd365' | 'never' | 'date'; date: string };

const DAYS = { d30: 30, d90: 90, d365: 365 } as const;
const DAY = 86_400_000;

/** The first choice that is offered. */
export const ONE_YEAR: Expiry = { choice: 'd365', date: '' };

/** The moment that was chosen, `null` for never, `undefined` for a date that is missing or past. */
export function expiresAt(expiry: Expiry, now: number): string | null | undefined {
  if (expiry.choice === 'never') return null;
  if (expiry.choice !== 'date') return new Date(now + DAYS[expiry.choice] * DAY).toISOString();
  const end = Date.parse(`${expiry.date}T23:59:59`);
  return Number.isFinite(end) && end > now ? new Date(end).toISOString() : undefined;
}

/** The field of a form. */
export function ExpiryField({ value, set, wrong }: { value: Expiry; set: (value: Expiry) => void; wrong: string | undefined }) {
  const { w } = useLanguage();
  const choices = ['d30', 'd90', 'd365', 'never', 'date'] as const;
  return (
    <div class="field">
      <label for="expiry">{w.keys.expiryLabel}</label>
      <div class="row">
        <select
          id="expiry"
          value={value.choice}
          aria-describedby={wrong === undefined ? undefined : 'expiry-wrong'}
          onChange={(event) => set({ ...value, choice: event.currentTarget.value as Expiry['choice'] })}
        >
          {choices.map((choice) => (
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
              aria-invalid={wrong !== undefined}
              onInput={(event) => set({ ...value, date: event.currentTarget.value })}
            />
          </span>
        )}
      </div>
      {wrong !== undefined && (
        <p class="wrong" id="expiry-wrong">
          {wrong}
        </p>
      )}
    </div>
  );
}
