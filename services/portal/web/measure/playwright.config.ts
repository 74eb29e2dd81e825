//! The measurements run one after the other against a running cluster. They judge nothing: a busy machine is slow.
import { defineConfig } from '@playwright/test';
import common from '../playwright.config';

export default defineConfig({ ...common, projects: [], workers: 1, fullyParallel: false, testDir: '.', timeout: 900_000 });
