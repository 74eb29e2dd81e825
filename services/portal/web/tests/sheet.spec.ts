//! Sheets keep their cells: for programs that split lines before they parse, and for spreadsheets of both languages.
import { expect, test } from '@playwright/test';
import { line, sheet } from '../src/sheet';

/** Where Python's `str.splitlines` ends a line, the most of any reader; the runtime crate (`line_end.rs`) has the same. */
const LINE_ENDS = ['\n', '\v', '\f', '\r', '\x1c', '\x1d', '\x1e', '\x85', '\u2028', '\u2029'];
const LANGUAGES = [
  { lang: 'fr', separator: ';', numbers: '0,5;-2,25;1000' },
  { lang: 'en', separator: ',', numbers: '0.5,-2.25,1000' },
] as const;

test('a cell with a separator, quotes or a line end of any kind is quoted, and no other', () => {
  for (const { lang, separator } of LANGUAGES) {
    for (const special of [separator, '"', ...LINE_ENDS]) {
      const written = special === '"' ? '""' : special;
      // Twice: every quote is doubled, not the first one only.
      const row = line(['1', `a${special}b${special}`, 'é'], lang);
      const expected = ['1', `"a${written}b${written}"`, 'é'].join(separator);
      expect(row, `${lang} U+${special.charCodeAt(0).toString(16)}`).toBe(`${expected}\r\n`);
    }
    const bare = ["Côte-d'Or", '', 'a=b @ 1.5'];
    expect(line(bare, lang)).toBe(`${bare.join(separator)}\r\n`);
  }
});

test('no text is a formula, and numbers have the decimal sign of the language', () => {
  for (const { lang, numbers } of LANGUAGES) {
    for (const text of ['=1+1', '+1', '-1', '@SUM(1)', '\t=1']) expect(line([text], lang)).toBe(`'${text}\r\n`);
    // The apostrophe is within the quotes: a quote that is not a cell's first character opens nothing.
    expect(line(['=A1&"x"'], lang)).toBe(`"'=A1&""x"""\r\n`);
    expect(line(['\r=1'], lang)).toBe(`"'\r=1"\r\n`);
    // A negative number is no formula: it stays one to calculate with.
    expect(line([0.5, -2.25, 1000], lang)).toBe(`${numbers}\r\n`);
    // Without the mark Excel takes UTF-8 for the code page of the machine.
    expect(sheet([['é'], ['1']], lang).join('')).toBe('\uFEFFé\r\n1\r\n');
  }
});
