//! The map: 96 outlines with an inset, and five tiles. One tab stop; arrow keys go to the neighbour.
import { useMemo, useRef } from 'preact/hooks';
import { useLanguage } from '../language';
import { middle, type Outlines, type Point } from '../outlines';
import { colour, OVERSEAS, step, type By, type Row } from './scale';
import { label } from './words';

type Props = { outlines: Outlines; rows: Row[]; by: By; picked: string | undefined; pick: (code: string) => void };

/** Where the inset stands on the map, in the Atlantic, and which part of the map it shows, larger. */
const INSET = { x: 2, y: 660, width: 292, height: 236, shows: '577 246 105 85' };
const IN_INSET = ['75', '77', '78', '91', '92', '93', '94', '95'];

/** The map of one scale. */
export function France({ outlines, rows, by, picked, pick }: Props) {
  const language = useLanguage();
  const { w } = language;
  const box = useRef<HTMLDivElement>(null);
  const places = useMemo(() => placesOf(outlines), [outlines]);
  const known = new Map(rows.map((row) => [row.code, row]));
  const stop = picked ?? rows[0]?.code;
  const go = (code: string | undefined) => {
    if (code === undefined) return;
    pick(code);
    box.current?.querySelector<HTMLElement | SVGElement>(`[data-code="${code}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const from = (event.target as Element).getAttribute('data-code');
    if (from === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const codes = rows.map((row) => row.code);
    const at = codes.indexOf(from);
    const next: Record<string, () => string | undefined> = {
      Home: () => codes[0],
      End: () => codes.at(-1),
      PageDown: () => codes[at + 1],
      PageUp: () => codes[at - 1],
      Enter: () => from,
      ' ': () => from,
      ArrowRight: () => neighbour(places, from, 1, 0),
      ArrowLeft: () => neighbour(places, from, -1, 0),
      ArrowDown: () => neighbour(places, from, 0, 1),
      ArrowUp: () => neighbour(places, from, 0, -1),
    };
    const found = next[event.key];
    if (!found) return;
    event.preventDefault();
    go(found());
  };
  const option = (row: Row) => ({
    role: 'option' as const,
    'data-code': row.code,
    'data-step': step(row, by) ?? 'none',
    'aria-label': label(language, row, by),
    'aria-selected': row.code === picked,
    onClick: () => pick(row.code),
  });
  const shape = (code: string) => `d ${colour(stepOf(known, code, by), by)}${code === picked ? ' on' : ''}`;
  // The picked one is drawn last, so that its outline lies above its neighbours'.
  const order = Object.keys(outlines.paths).sort((a, b) => Number(a === picked) - Number(b === picked));
  return (
    <div class="france" ref={box} role="listbox" aria-label={w.map.figure} aria-describedby="map-help" onKeyDown={onKeyDown}>
      <svg viewBox={outlines.viewBox} role="presentation">
        <defs>
          <pattern id="hatch" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect class="hatch-ground" width="9" height="9" />
            <path class="hatch-line" d="M0 0V9" />
          </pattern>
        </defs>
        {order.map((code) => {
          const row = known.get(code);
          return (
            row && (
              <path key={code} class={shape(code)} d={outlines.paths[code]} tabindex={code === stop ? 0 : -1} {...option(row)}>
                <title>{label(language, row, by)}</title>
              </path>
            )
          );
        })}
        <g class="inset" aria-hidden="true">
          <rect x={INSET.x} y={INSET.y} width={INSET.width} height={INSET.height} rx={14} />
          <svg x={INSET.x} y={INSET.y} width={INSET.width} height={INSET.height} viewBox={INSET.shows}>
            {order
              .filter((code) => IN_INSET.includes(code))
              .map((code) => (
                <path key={code} class={`${shape(code)} small`} d={outlines.paths[code]} onClick={() => pick(code)} vector-effect="non-scaling-stroke" />
              ))}
          </svg>
          <text x={INSET.x + 4} y={INSET.y + INSET.height + 26}>
            {w.map.inset}
          </text>
        </g>
      </svg>
      <div class="tiles" role="group" aria-label={w.map.overseas}>
        {OVERSEAS.map((code) => {
          const row = known.get(code);
          return (
            row && (
              <div
                key={code}
                class={`tile ${colour(step(row, by), by)}${code === picked ? ' on' : ''}`}
                tabIndex={code === stop ? 0 : -1}
                {...option(row)}
              >
                {code} <small>{row.name}</small>
              </div>
            )
          );
        })}
      </div>
    </div>
  );
}

function stepOf(rows: Map<string, Row>, code: string, by: By): number | undefined {
  const row = rows.get(code);
  return row && step(row, by);
}

function placesOf(outlines: Outlines): Map<string, Point> {
  const places = new Map(Object.entries(outlines.paths).map(([code, path]) => [code, middle(path)]));
  OVERSEAS.forEach((code, index) => places.set(code, { x: 120 + 245 * index, y: 1260 }));
  return places;
}

/** The nearest place in a direction: what lies aside counts twice as far. */
function neighbour(places: Map<string, Point>, from: string, right: number, down: number): string | undefined {
  const start = places.get(from);
  if (!start) return undefined;
  let best: { code: string; cost: number } | undefined;
  for (const [code, { x, y }] of places) {
    const [dx, dy] = [x - start.x, y - start.y];
    const ahead = dx * right + dy * down;
    const aside = Math.abs(right === 0 ? dx : dy);
    const cost = ahead + 2 * aside;
    if (code !== from && ahead > 0 && aside <= 2 * ahead && (!best || cost < best.cost)) best = { code, cost };
  }
  return best?.code;
}
