//! How the browser tests run: one after the other, in Debian's Chromium, on the cluster that `cargo dev env` tells of.
import { defineConfig } from '@playwright/test';
import { cluster } from './tests/cluster';

export default defineConfig({
  testDir: 'tests',
  outputDir: `${cluster.folder}/results`,
  workers: 1,
  retries: 0,
  forbidOnly: true,
  timeout: 90_000,
  expect: { timeout: 15_000 },
  reporter: [['list']],
  use: {
    baseURL: cluster.portal,
    locale: 'en-GB',
    viewport: { width: 1280, height: 900 },
    // A trace would hold what a page shows: the texts of keys, which are to be nowhere.
    trace: 'off',
    launchOptions: { executablePath: cluster.chromium, args: cluster.chromiumArguments },
  },
});
