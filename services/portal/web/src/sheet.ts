//! Tables as spreadsheets read them: CSV with a byte order mark, and no cell that is taken for a formula.
import type { Lang } from './language';

export type Cell = string | number;

/** Rows as text: French sheets want `;` and a decimal comma. */
export function sheet(rows: Cell[][], lang: Lang): string[] {
  return ['\uFEFF', ...rows.map((row) => line(row, lang))];
}

/** One row, with its line end. */
export function line(row: Cell[], lang: Lang): string {
  const separator = lang === 'fr' ? ';' : ',';
  return `${row.map((value) => cell(value, lang)).join(separator)}\r\n`;
}

function cell(value: Cell, lang: Lang): string {
  if (typeof value === 'number') return lang === 'fr' ? String(value).replace('.', ',') : String(value);
  const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  // A reader that splits lines before it parses may end one at any of these (Python's splitlines).
  return /[";,\n-\r\x1c-\x1e\x85\u2028\u2029]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
