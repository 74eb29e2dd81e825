//! Scores over time as points. The keyboard walks them as a slider; a line below tells the one at hand.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useLanguage } from '../language';
import type { Entry } from './pages';

/** Points of these entries; the table below the plot has the same rows. */
export function Plot({ entries }: { entries: Entry[] }) {
  const { w, f, lang } = useLanguage();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [at, setAt] = useState<number | undefined>();
  const ordered = [...entries].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const latest = useRef(ordered);
  latest.current = ordered;

  useEffect(() => {
    const target = box.current;
    if (!target) return;
    const style = getComputedStyle(target);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const ink = resolved(target, 'var(--soft)');
    const line = resolved(target, 'var(--line)');
    const brand = resolved(target, 'var(--brand)');
    const month = new Intl.DateTimeFormat(lang === 'fr' ? 'fr-FR' : 'en-GB', { month: 'short', year: '2-digit' });
    const day = new Intl.DateTimeFormat(lang === 'fr' ? 'fr-FR' : 'en-GB', { day: 'numeric', month: 'short' });
    const font = `12px ${colour('font-family') || style.fontFamily}`;
    const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: target.clientWidth,
        height: 300,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, x: false, y: false, points: { size: 13, width: 3, stroke: ink, fill: 'transparent' } },
        scales: { x: { time: true }, y: { range: [0, 100] } },
        axes: [
          { ...axis, values: (_, splits, __, ___, step) => splits.map((time) => (step > 1_900_000 ? month : day).format(time * 1000)) },
          { ...axis, splits: () => [0, 20, 40, 60, 80, 100], size: 42 },
        ],
        series: [{}, { stroke: brand, paths: () => null, points: { show: true, size: 7, width: 1, stroke: brand, fill: translucent(brand) } }],
        hooks: { setCursor: [(self) => setAt(self.cursor.idx ?? undefined)] },
      },
      data(latest.current),
      target,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: target.clientWidth, height: 300 }));
    resized.observe(target);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [lang]);
  useEffect(() => {
    plot.current?.setData(data(ordered));
    setAt(undefined);
  }, [entries]);

  const show = (index: number) => {
    const made = plot.current;
    const one = ordered[index];
    if (!made || !one) return;
    made.setCursor({ left: made.valToPos(Date.parse(one.at) / 1000, 'x'), top: made.valToPos(one.score, 'y') }, false);
    setAt(index);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = ordered.length - 1;
    const from = at ?? last + 1;
    const next: Record<string, number> = {
      ArrowLeft: from - 1,
      ArrowDown: from - 1,
      ArrowRight: from + 1,
      ArrowUp: from + 1,
      PageDown: from - 10,
      PageUp: from + 10,
      Home: 0,
      End: last,
    };
    const to = next[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, to)));
  };
  const point = at === undefined ? undefined : ordered[at];
  const words = point && w.history.plotPoint(point.company, f.number(point.score), point.rating, f.date(point.at));
  return (
    <>
      <p class="hidden" id="plot-help">
        {w.history.plotHelp}
      </p>
      <div
        class="plot"
        ref={box}
        role="slider"
        tabIndex={0}
        aria-label={w.history.plot}
        aria-describedby="plot-help"
        aria-valuemin={1}
        aria-valuemax={Math.max(1, ordered.length)}
        aria-valuenow={(at ?? ordered.length - 1) + 1}
        aria-valuetext={words ?? w.history.plotIdle}
        onKeyDown={onKeyDown}
      />
      <p class={`readout${words === undefined ? ' soft' : ''}`}>{words ?? w.history.plotIdle}</p>
    </>
  );
}

function data(entries: Entry[]): uPlot.AlignedData {
  return [entries.map((one) => Date.parse(one.at) / 1000), entries.map((one) => one.score)];
}

/** A colour as the browser computes it: canvases do not know `light-dark()`. */
function resolved(target: HTMLElement, colour: string): string {
  const probe = document.createElement('span');
  probe.style.color = colour;
  target.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function translucent(colour: string): string {
  return colour.replace(/^rgb\(([^)]*)\)$/, 'rgba($1, 0.4)');
}
