//! A page of a history, and the way to the others.
import { useLanguage } from '../language';
import type { Entry } from './pages';

type Props = { entries: Entry[]; names: Record<string, string>; first: number; total: number; go: (first: number) => void; size: number };

/** Rows `first` to `first + size` of `total`. */
export function Table({ entries, names, first, total, go, size }: Props) {
  const { w, f } = useLanguage();
  const last = Math.max(0, Math.floor((total - 1) / size) * size);
  const steps: [string, number, boolean][] = [
    [w.history.firstPage, 0, first > 0],
    [w.history.previous, Math.max(0, first - size), first > 0],
    [w.history.next, first + size, first + size < total],
    [w.history.lastPage, last, first < last],
  ];
  return (
    <section class="card tablecard">
      <div class="scroll">
        <table class="cards">
          <caption class="hidden">{w.history.table}</caption>
          <thead>
            <tr>
              <th scope="col">{w.history.company}</th>
              <th scope="col">{w.history.sector}</th>
              <th scope="col">{w.history.departement}</th>
              <th scope="col" class="n">
                {w.history.score}
              </th>
              <th scope="col">{w.history.rating}</th>
              <th scope="col">{w.history.date}</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((one) => (
              <tr key={one.id}>
                <th scope="row" class="break">
                  {one.company}
                </th>
                <td data-label={w.history.sector} class="soft">
                  {one.sector}
                </td>
                <td data-label={w.history.departement}>
                  {one.dept} {names[one.dept] ?? ''}
                </td>
                <td data-label={w.history.score} class="n">
                  {f.number(one.score)}
                </td>
                <td data-label={w.history.rating}>
                  <b>{one.rating}</b>
                </td>
                <td data-label={w.history.date} class="soft nowrap">
                  {f.time(one.at)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <nav class="row between" aria-label={w.history.pages}>
        <span class="soft small tab" role="status">
          {w.history.page(f.number(total === 0 ? 0 : first + 1), f.number(Math.min(total, first + size)), f.number(total))}
        </span>
        <span class="row">
          {steps.map(([text, to, possible]) => (
            <button type="button" class="tiny" key={text} disabled={!possible} onClick={() => go(to)}>
              {text}
            </button>
          ))}
        </span>
      </nav>
    </section>
  );
}
