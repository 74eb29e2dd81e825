//! How the pages are built: one script and one style for the first page, one more of each for the others.
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  build: {
    target: 'es2023',
    // Nothing is inlined: the pages' policy allows no `data:` address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
