//! How the pages are built: one script and one style for the first page, one more of each for the others.
import { defineConfig } from 'vite';

/** Modules of pages that are loaded when they are gone to. */
const LATER = /src\/(keys|history|docs|sources)(\/|\.tsx)|words\/reasons|uplot/;

export default defineConfig({
  base: '/',
  build: {
    target: 'es2023',
    // Nothing is inlined: the pages' policy allows no `data:` address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // What pages share stays in the first script, which is one request.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'first', test: (id) => !LATER.test(id) }] } } },
  },
});
