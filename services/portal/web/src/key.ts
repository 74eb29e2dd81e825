//! Makes an API key in the browser: its text, its key id and its SHA-256.
//!
//! The format is the domain crate's (`key.rs`): `<prefix>_` + key id (12 base62) + `_` + secret
//! (43 base62, 256 bits) + checksum (6 base62, CRC-32 of all before it). Golden vectors, which both
//! sides test, hold the two to each other.

/** A key that nobody but this page has seen. */
export type NewKey = { text: string; keyId: string; sha256: string };

/** Random bytes that a key is made of: 16 for the key id, 32 for the secret. */
const RANDOM_BYTES = 48;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The last `length` base62 digits of a big-endian number. */
function base62(bytes: Uint8Array, length: number): string {
  let rest = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  let text = '';
  for (let digit = 0; digit < length; digit += 1) {
    text = DIGITS.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  return text;
}

/** CRC-32 (ISO 3309) in four bytes, big-endian. */
function crc32(bytes: Uint8Array): Uint8Array {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  sum = ~sum >>> 0;
  return Uint8Array.of(sum >>> 24, (sum >>> 16) & 255, (sum >>> 8) & 255, sum & 255);
}

/** The key that these 48 random bytes make. */
export async function compose(random: Uint8Array, prefix: string): Promise<NewKey> {
  const encoder = new TextEncoder();
  const keyId = base62(random.subarray(0, 16), 12);
  const body = `${prefix}_${keyId}_${base62(random.subarray(16, RANDOM_BYTES), 43)}`;
  const text = body + base62(crc32(encoder.encode(body)), 6);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text)));
  const sha256 = Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return { text, keyId, sha256 };
}

/** Whether this page may make keys: WebCrypto exists in secure contexts only. */
export function canMakeKeys(): boolean {
  return globalThis.isSecureContext && typeof globalThis.crypto?.subtle?.digest === 'function';
}

/** A new key from the browser's secure random source. */
export function generate(prefix: string): Promise<NewKey> {
  return compose(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)), prefix);
}
