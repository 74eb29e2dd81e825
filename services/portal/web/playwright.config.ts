//! The browser tests run one after the other against a running cluster: each that fails once more, and one that passes
//! then is reported as flaky.
import { defineConfig } from '@playwright/test';

// Searched for texts of keys afterwards.
const folder = process.env['WATER_BROWSER_FOLDER'] ?? 'node_modules/.tests';

export default defineConfig({
  testDir: 'tests',
  outputDir: `${folder}/results`,
  workers: 1,
  retries: 1,
  forbidOnly: true,
  // For a machine of two busy cores; what is fast is measured elsewhere.
  timeout: 240_000,
  use: { actionTimeout: 60_000, navigationTimeout: 60_000 },
  expect: { timeout: 60_000 },
  reporter: [['list'], ['json', { outputFile: `${folder}/report.json` }]],
});
