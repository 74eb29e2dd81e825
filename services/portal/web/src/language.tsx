//! The reader's language: its words, and how it writes numbers, dates and spans of time.
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';
import { askIn } from './api';
import { keep, kept } from './preference';
import { en } from './words/en';
import { fr } from './words/fr';
import type { Words } from './words/fr';

export type Lang = 'fr' | 'en';

/** How a language writes figures. Times are the reader's own zone's. */
export type Formats = {
  number: (value: number, decimals?: number) => string;
  date: (iso: string) => string;
  day: (iso: string) => string;
  time: (iso: string | number) => string;
  ago: (iso: string) => string;
  until: (iso: string) => string;
};

export type Language = { lang: Lang; w: Words; f: Formats; choose: (lang: Lang) => void };

const SPANS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

function formats(lang: Lang): Formats {
  const locale = lang === 'fr' ? 'fr-FR' : 'en-GB';
  const date = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' });
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' });
  const time = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'always', style: 'long' });
  const span = (iso: string): string => {
    const seconds = (Date.parse(iso) - Date.now()) / 1000;
    const [unit, size] = SPANS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
    return relative.format(Math.trunc(seconds / size), unit);
  };
  const plain = new Map<number | undefined, Intl.NumberFormat>();
  return {
    number: (value, decimals) => {
      const known = plain.get(decimals);
      const format = known ?? new Intl.NumberFormat(locale, { minimumFractionDigits: decimals, maximumFractionDigits: decimals ?? 3 });
      if (!known) plain.set(decimals, format);
      return format.format(value);
    },
    date: (iso) => date.format(new Date(iso)),
    day: (iso) => day.format(new Date(iso)),
    time: (iso) => time.format(new Date(iso)),
    ago: span,
    until: span,
  };
}

function preferred(): Lang {
  const choice = kept('language');
  if (choice === 'fr' || choice === 'en') return choice;
  const first = navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag === 'fr' || tag === 'en');
  return first === 'fr' ? 'fr' : 'en';
}

const Context = createContext<Language | undefined>(undefined);

/** Gives everything below it the reader's language. */
export function LanguageProvider({ children }: { children: ComponentChildren }) {
  const [lang, set] = useState<Lang>(preferred);
  useEffect(() => {
    document.documentElement.lang = lang;
    askIn(lang);
  }, [lang]);
  const language = useMemo<Language>(
    () => ({
      lang,
      w: lang === 'fr' ? fr : en,
      f: formats(lang),
      choose: (next) => {
        keep('language', next);
        set(next);
      },
    }),
    [lang],
  );
  return <Context.Provider value={language}>{children}</Context.Provider>;
}

/** The reader's language. */
export function useLanguage(): Language {
  const language = useContext(Context);
  if (!language) throw new Error('no LanguageProvider');
  return language;
}
