//! One département's two records, each figure with its date and source.
import type { Source } from '../api';
import { Gauge } from '../gauge';
import { useLanguage, type Language } from '../language';
import { colour, step, type Row } from './scale';
import { inWords } from './words';

/** The picked département, or what to do to pick one. */
export function Details({ row, sources }: { row: Row | undefined; sources: Source[] }) {
  const language = useLanguage();
  const { w, f } = language;
  if (!row) {
    return (
      <section class="card" aria-live="polite">
        <h2>{w.map.pickOne}</h2>
        <p class="soft">{w.map.pickText}</p>
      </section>
    );
  }
  const { risk, stress } = row;
  const lines: [string, number | undefined, number][] = [
    [w.map.stressIndex, stress?.stressIndex, 5],
    [w.map.floodRisk, risk?.flood, 100],
    [w.map.droughtRisk, risk?.drought, 100],
    [w.map.overallRisk, risk?.overall, 100],
  ];
  return (
    <section class="card" aria-live="polite" aria-atomic="true">
      <div class="row between">
        <h2>
          {row.name} <span class="soft tab">{row.code}</span>
        </h2>
        <span class={`pill ${colour(step(row, 'level'), 'level')}`}>{inWords(language, row, 'level')}</span>
      </div>
      <dl class="kv">
        {lines.map(([name, value, most]) => (
          <Line key={name} name={name} value={value} most={most} rating={name === w.map.overallRisk ? risk?.rating : undefined} />
        ))}
      </dl>
      {row.derived && <p class="small soft">{w.map.derivedText}</p>}
      <p class="small soft">
        {origins(language, sources, row).map((line) => (
          <span key={line}>
            {line}{' '}
          </span>
        ))}
      </p>
      <div class="note">
        <p>{w.map.sameByApi}</p>
        <code class="break">{`GET /api/v1/stress?dept=${row.code}`}</code>
        <br />
        <code class="break">{`GET /api/v1/risque?dept=${row.code}`}</code>
      </div>
      <p class="hidden">{risk ? f.day(risk.updatedAt) : ''}</p>
    </section>
  );
}

function Line({ name, value, most, rating }: { name: string; value: number | undefined; most: number; rating: string | undefined }) {
  const { w, f } = useLanguage();
  return (
    <>
      <dt>{name}</dt>
      <dd class="n">
        {value === undefined ? (
          <small>{w.map.noData}</small>
        ) : (
          <>
            {f.number(value)} <small>/ {most}</small>
            {rating !== undefined && <small> · {w.map.rating(rating)}</small>}
          </>
        )}
      </dd>
      <dd class="gauge" aria-hidden="true">
        <Gauge share={(value ?? 0) / most} />
      </dd>
    </>
  );
}

/** A line for each of the département's figures: who gave it, and when. */
function origins({ w, f }: Language, sources: Source[], { stress, risk }: Row): string[] {
  const line = (what: string, dataset: string, date: string | undefined): string[] => {
    const source = sources.find((one) => one.dataset === dataset);
    const asOf = date ?? source?.asOf;
    if (!source || !asOf) return [];
    const who = source.synthetic ? w.map.synthetic : (source.source ?? w.map.unknownSource);
    return [w.map.sourceLine(what, who, f.day(asOf))];
  };
  return [
    ...(stress ? line(w.map.what.vigieau, LEVELS_FROM[stress.levelSource] ?? 'stress', stress.levelAsOf) : []),
    ...(stress ? line(w.map.what.stress, 'stress', undefined) : []),
    ...(risk ? line(w.map.what.risk, 'risk', undefined) : []),
  ];
}

/** The dataset of each origin of a level. */
const LEVELS_FROM: Record<string, string> = { register: 'vigieau', file: 'stress', derived: 'stress' };
