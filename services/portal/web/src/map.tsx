//! The map of an account: the départements by one of five scales, the picked one, and the table.
import { useLocation } from 'preact-iso';
import { useAnswer } from './answer';
import { of, type Account, type List, type RiskRecord, type SignedIn, type SourceList, type StressRecord } from './api';
import { Choice } from './frame';
import { useLanguage } from './language';
import { Details } from './map/details';
import { France } from './map/france';
import { Legend } from './map/legend';
import { BYS, isBy, rows, type By } from './map/scale';
import { Table } from './map/table';
import { useOutlines } from './outlines';
import { Heading, NoAccess, ProblemNotice, Waiting } from './page';

/** The moments of what a scale shows, of which the newest is the map's: a level may be older, and the picked one says so. */
function dates(by: By, stress: List<StressRecord> | undefined, risks: List<RiskRecord> | undefined): string[] {
  if (by === 'level') return stress?.data.map((record) => record.levelAsOf) ?? [];
  const shown = by === 'stress' ? stress : risks;
  return shown ? [shown.updatedAt] : [];
}

/** The page of one account. */
export default function MapPage({ account }: { account: Account; session: SignedIn }) {
  const { w, f } = useLanguage();
  const { path, query, route } = useLocation();
  const outlines = useOutlines();
  const may = (resource: string) => (account.access ? of(account.id, resource) : undefined);
  const stress = useAnswer<List<StressRecord>>(may('stress'));
  const risks = useAnswer<List<RiskRecord>>(may('risque'));
  const sources = useAnswer<SourceList>(may('sources'));
  const by: By = isBy(query['by']) ? query['by'] : 'level';
  const names = outlines?.names ?? {};
  const picked = query['dept'] !== undefined && query['dept'] in names ? query['dept'] : undefined;

  const show = (change: { by?: By; dept?: string }) => {
    const next = new URLSearchParams();
    const [scale, dept] = [change.by ?? by, change.dept ?? picked];
    if (scale !== 'level') next.set('by', scale);
    if (dept !== undefined) next.set('dept', dept);
    const text = next.toString();
    route(text === '' ? path : `${path}?${text}`, true);
  };
  const given = sources.data?.data ?? [];
  const all = rows(names, stress.data?.data ?? [], risks.data?.data ?? []);
  const made = given.filter((source) => source.synthetic && source.dataset in w.map.what);
  const date = dates(by, stress.data, risks.data).sort().at(-1);
  // What comes later would move what is there.
  const ready = outlines && [stress, risks, sources].every((answer) => answer.data || answer.problem);
  return (
    <>
      <Heading title={w.map.title}>{date ? w.map.lede(f.day(date)) : w.map.ledeWaiting}</Heading>
      {!account.access && <NoAccess plan={account.plan} />}
      {stress.problem && <ProblemNotice problem={stress.problem} at={stress.at} again={() => void stress.reload()} />}
      {risks.problem && risks.problem.code !== stress.problem?.code && (
        <ProblemNotice problem={risks.problem} at={risks.at} again={() => void risks.reload()} />
      )}
      {account.access && !ready && <Waiting />}
      {account.access && ready && (
        <div class="grid mapgrid">
          <section class="card">
            <Choice legend={w.map.scale} name="by" options={BYS.map((one) => [one, w.map.by[one]])} value={by} choose={(one) => show({ by: one })} quiet />
            <p class="hidden" id="map-help">
              {w.map.help}
            </p>
            <France outlines={outlines} rows={all} by={by} picked={picked} pick={(dept) => show({ dept })} />
            <Legend rows={all} by={by} />
            {made.length > 0 && (
              <p class="small soft synthetic">{w.map.syntheticNote(made.map((source) => w.map.what[source.dataset as keyof typeof w.map.what]).join(', '))}</p>
            )}
          </section>
          <div class="stack">
            <Details row={all.find((row) => row.code === picked)} sources={given} />
            <Table rows={all} by={by} picked={picked} pick={(dept) => show({ dept })} />
          </div>
        </div>
      )}
    </>
  );
}
