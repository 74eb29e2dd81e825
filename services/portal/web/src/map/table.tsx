//! The map's figures as a table that can be sorted, and its download for spreadsheets.
import { useEffect, useRef, useState } from 'preact/hooks';
import { saveFile } from '../clipboard';
import { useLanguage } from '../language';
import { sheet } from '../sheet';
import { BYS, colour, figure, step, type By, type Row } from './scale';
import { inWords } from './words';

type Column = 'code' | 'name' | By;

/** All départements; a row picks one. */
export function Table({ rows, by, picked, pick }: { rows: Row[]; by: By; picked: string | undefined; pick: (code: string) => void }) {
  const language = useLanguage();
  const { w, lang } = language;
  const [sort, setSort] = useState<{ by: Column; up: boolean }>({ by: 'code', up: true });
  const box = useRef<HTMLDivElement>(null);
  const second: By = by === 'level' ? 'stress' : by;
  useEffect(() => {
    // A pick on the map brings its row into view, without moving the page.
    const frame = box.current;
    const lines = [...(frame?.querySelectorAll<HTMLElement>('tbody tr') ?? [])];
    const at = lines.findIndex((line) => line.dataset['row'] === picked);
    const row = lines[at];
    if (!frame || !row) return;
    const head = frame.querySelector('thead')?.offsetHeight ?? 0;
    const shown = row.offsetTop - head >= frame.scrollTop && row.offsetTop + row.offsetHeight <= frame.scrollTop + frame.clientHeight;
    if (!shown) frame.scrollTop = (lines[Math.max(0, at - 4)]?.offsetTop ?? 0) - head;
  }, [picked]);
  const value = (row: Row): string | number => (sort.by === 'code' || sort.by === 'name' ? row[sort.by] : (figure(row, sort.by) ?? -1));
  const sorted = [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const order = typeof x === 'string' && typeof y === 'string' && sort.by === 'name' ? x.localeCompare(y, lang) : x < y ? -1 : x > y ? 1 : 0;
    return (sort.up ? order : -order) || (a.code < b.code ? -1 : 1);
  });
  const head = (column: Column, text: string, number = false) => {
    const on = sort.by === column;
    return (
      <th scope="col" class={number ? 'n' : undefined} aria-sort={on ? (sort.up ? 'ascending' : 'descending') : 'none'}>
        <button type="button" onClick={() => setSort({ by: column, up: on ? !sort.up : column === 'code' || column === 'name' })}>
          {text}
          <span aria-hidden="true">{on ? (sort.up ? '▴' : '▾') : ''}</span>
        </button>
      </th>
    );
  };
  const download = () => {
    const titles = [w.map.code, w.map.departement, ...BYS.map((one) => w.map.by[one])];
    const lines = rows.map((row) => [row.code, row.name, ...BYS.map((one) => (one === 'level' ? inWords(language, row, one) : (figure(row, one) ?? '')))]);
    saveFile(sheet([titles, ...lines], lang), 'text/csv;charset=utf-8', 'departements.csv');
  };
  return (
    <section class="card tablecard">
      <div class="row between">
        <h2 id="table-title">{w.map.table}</h2>
        <button type="button" class="tiny" aria-label={w.map.csvLabel} onClick={download}>
          {w.map.csv}
        </button>
      </div>
      <div class="scroll tablebox sticky" ref={box} tabIndex={0} role="region" aria-labelledby="table-title">
        <table aria-labelledby="table-title">
          <thead>
            <tr>
              {head('code', w.map.code)}
              {head('name', w.map.departement)}
              {head('level', w.map.short.level)}
              {head(second, w.map.short[second], true)}
            </tr>
          </thead>
          <tbody>
            {sorted.map((row) => (
              <tr key={row.code} data-row={row.code} class={row.code === picked ? 'on' : undefined} onClick={() => pick(row.code)}>
                <td class="tab soft">{row.code}</td>
                <th scope="row">
                  <button type="button" class="pick" aria-pressed={row.code === picked} onClick={() => pick(row.code)}>
                    {row.name}
                  </button>
                </th>
                <td>
                  <span class={`pill ${colour(step(row, 'level'), 'level')}`}>{inWords(language, { ...row, derived: false }, 'level')}</span>
                  {row.derived && <span class="mark">{w.map.derived}</span>}
                </td>
                <td class="n">{figure(row, second) === undefined ? '–' : inWords(language, row, second)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
