//! The outlines of the départements: fetched once, beside the script, and measured for the keyboard.
import { useEffect, useState } from 'preact/hooks';
import address from './outlines.json?url';
import { loadAgain } from './reload';

export type Outlines = { viewBox: string; names: Record<string, string>; paths: Record<string, string> };
export type Point = { x: number; y: number };

let asked: Promise<Outlines> | undefined;

/** The outlines, asked for at the first call only. */
export function outlines(): Promise<Outlines> {
  asked ??= fetch(address).then((answer) => {
    if (answer.status !== 404) return answer.json() as Promise<Outlines>;
    loadAgain();
    return new Promise<never>(() => undefined);
  });
  return asked;
}

/** The outlines, `undefined` until they have come. */
export function useOutlines(): Outlines | undefined {
  const [known, set] = useState<Outlines | undefined>();
  useEffect(() => {
    void outlines().then(set);
  }, []);
  return known;
}

/** The middle of a path's bounding box. Paths have absolute `M`, relative `l` and `z` only. */
export function middle(path: string): Point {
  let [x, y] = [0, 0];
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (const [, command, pairs] of path.matchAll(/([Ml])([^Mlz]*)/g)) {
    const numbers = (pairs ?? '').match(/-?[\d.]+/g)?.map(Number) ?? [];
    for (let index = 0; index + 1 < numbers.length; index += 2) {
      const [dx, dy] = [numbers[index] ?? 0, numbers[index + 1] ?? 0];
      // After the first pair of `M` further pairs are lines to absolute places.
      [x, y] = command === 'M' ? [dx, dy] : [x + dx, y + dy];
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    }
  }
  return { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 };
}
