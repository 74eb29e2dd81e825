//! The browser tests against a running cluster: beside each other where each keeps to its own keys; then, one after the
//! other, those tagged `@alone`, which measure or take portals away; then the long ones. Each that fails runs once more, and
//! one that passes then is reported as flaky.
import { defineConfig } from '@playwright/test';

const ALONE = /@alone/;
const LONG = '**/*.long.spec.ts';
// Searched for texts of keys afterwards.
const folder = process.env['WATER_BROWSER_FOLDER'] ?? 'node_modules/.tests';

export default defineConfig({
  testDir: 'tests',
  outputDir: `${folder}/results`,
  // More than there may be cores: pages, gates and people wait for each other most of the time.
  workers: 3,
  fullyParallel: true,
  projects: [
    { name: 'beside', testIgnore: LONG, grepInvert: ALONE },
    { name: 'alone', testIgnore: LONG, grep: ALONE, workers: 1, dependencies: ['beside'] },
    { name: 'long', testMatch: LONG, workers: 1, dependencies: ['alone'] },
  ],
  retries: 1,
  forbidOnly: true,
  // For a machine of two busy cores; what is fast is measured elsewhere.
  timeout: 240_000,
  use: {
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    launchOptions: {
      executablePath: process.env['WATER_CHROMIUM'],
      args: [
        `--host-resolver-rules=${process.env['WATER_HOST_RULES']}`,
        `--ignore-certificate-errors-spki-list=${process.env['WATER_SPKI_FINGERPRINTS']}`,
      ],
    },
  },
  expect: { timeout: 60_000 },
  reporter: [['list'], ['json', { outputFile: `${folder}/report.json` }]],
});
