//! What the colours mean, and how many départements have each.
import { useLanguage } from '../language';
import { colour, step, type By, type Row } from './scale';
import { stepInWords } from './words';

/** The legend of one scale. */
export function Legend({ rows, by }: { rows: Row[]; by: By }) {
  const language = useLanguage();
  const { w, f } = language;
  const count = (of: number | undefined) => rows.filter((row) => step(row, by) === of).length;
  const missing = count(undefined);
  return (
    <ul class="legend" aria-label={w.map.legend}>
      {[0, 1, 2, 3, 4].map((of) => (
        <li key={of}>
          <span class={`swatch ${colour(of, by)}`} aria-hidden="true" />
          {stepInWords(language, of, by)} <b>{f.number(count(of))}</b>
        </li>
      ))}
      {missing > 0 && (
        <li>
          <span class="swatch none" aria-hidden="true" />
          {w.map.noData} <b>{f.number(missing)}</b>
        </li>
      )}
    </ul>
  );
}
