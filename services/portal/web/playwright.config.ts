//! The browser tests run one after the other, once each, against a running cluster.
import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  // Searched for texts of keys afterwards.
  outputDir: `${process.env['WATER_BROWSER_FOLDER'] ?? 'node_modules/.tests'}/results`,
  workers: 1,
  retries: 0,
  forbidOnly: true,
  // For a machine of two busy cores; what is fast is measured elsewhere.
  timeout: 240_000,
  use: { actionTimeout: 60_000, navigationTimeout: 60_000 },
  expect: { timeout: 60_000 },
  reporter: [['list']],
});
