//! The looks of the pages. Words decide how wide a page is, and the scheme its contrasts: each language and each scheme is
//! looked at once, the first pair in every run, the other in long ones.
export type Appearance = { lang: 'fr' | 'en'; scheme: 'light' | 'dark' };

export const FIRST: Appearance = { lang: 'fr', scheme: 'light' };
export const SECOND: Appearance = { lang: 'en', scheme: 'dark' };
