//! A département's figure in words.
import type { Language } from '../language';
import { figure, LEVELS, step, width, type By, type Row } from './scale';

/** The figure that a scale shows: a level's name, an index with one decimal, a score. */
export function inWords({ w, f }: Language, row: Row, by: By): string {
  const value = figure(row, by);
  if (value === undefined) return w.map.noData;
  const levelOf = (rank: number) => w.map.levels[LEVELS[rank] ?? 'normal'];
  if (by === 'level') return row.derived ? `${levelOf(value)} (${w.map.derived})` : levelOf(value);
  return f.number(value);
}

/** The name of a step, as in the legend. */
export function stepInWords({ w, f }: Language, of: number, by: By): string {
  if (by === 'level') return w.map.levels[LEVELS[of] ?? 'normal'];
  return w.map.band(f.number(of * width(by)), f.number((of + 1) * width(by)));
}

/** What a screen reader says of a département on the map. */
export function label(language: Language, row: Row, by: By): string {
  const { w, f, lang } = language;
  const words = inWords(language, row, by);
  const figures = by === 'level' || step(row, by) === undefined ? words : w.map.of(words, f.number(width(by) * 5));
  return `${row.code} ${row.name}${lang === 'fr' ? ' : ' : ': '}${figures}`;
}
