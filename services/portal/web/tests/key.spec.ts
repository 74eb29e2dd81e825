//! Keys made here are keys as the domain crate makes them: the golden vectors that both sides read.
import { expect, test } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { compose } from '../src/key';

type Vector = { what: string; prefix: string; random: string; text: string; keyId: string; sha256: string };

const VECTORS = JSON.parse(readFileSync(new URL('../../../domain/data/key-vectors.json', import.meta.url), 'utf8')) as Vector[];

test('keys made in TypeScript equal those made in Rust', async () => {
  expect(VECTORS.length).toBeGreaterThan(5);
  for (const { what, prefix, random, ...expected } of VECTORS) {
    expect(await compose(Uint8Array.from(Buffer.from(random, 'hex')), prefix), what).toEqual(expected);
  }
});
