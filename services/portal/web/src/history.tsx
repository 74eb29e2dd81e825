//! The history of an account: its analyses and audits as points, as a table, as a file.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useAnswer } from './answer';
import { of, Problem, type Account, type SignedIn, type SourceList } from './api';
import { Choice } from './frame';
import { Export } from './history/export';
import { newest, page, PAGE, type Entry, type Kind } from './history/pages';
import { Plot } from './history/plot';
import './history/style.css';
import { Table } from './history/table';
import { CodeIcon } from './icons';
import { useLanguage } from './language';
import { useOutlines } from './outlines';
import { Heading, NoAccess, ProblemNotice, Waiting } from './page';

/** `at`: when it was answered, in milliseconds since the epoch. */
type Loaded = { total: number; entries: Entry[]; at: number };

/** Rows of the table at once. */
const SIZE = 25;

/** The page of one account. */
export default function HistoryPage({ account }: { account: Account; session: SignedIn }) {
  const { w, f } = useLanguage();
  const [kind, setKind] = useState<Kind>('analyses');
  const [loaded, setLoaded] = useState<Loaded | undefined>();
  const [problem, setProblem] = useState<Problem | undefined>();
  const [attempt, again] = useState(0);
  const [sector, setSector] = useState('');
  const [dept, setDept] = useState('');
  const names = useOutlines()?.names ?? {};
  const sources = useAnswer<SourceList>(account.access ? of(account.id, 'sources') : undefined);
  const origin = sources.data?.data.find((source) => source.dataset === kind);

  useEffect(() => {
    if (!account.access) return undefined;
    const controller = new AbortController();
    const told = (total: number, entries: Entry[]) =>
      // What is shown stays until as much of it is there again.
      setLoaded((before) => (before && entries.length < Math.min(total, before.entries.length) ? before : { total, entries, at: Date.now() }));
    newest(account.id, kind, controller.signal, told).then(
      () => setProblem(undefined),
      (error: unknown) => {
        if (!controller.signal.aborted) setProblem(error instanceof Problem ? error : new Problem('internal', 0, undefined, undefined, 0));
      },
    );
    return () => controller.abort();
  }, [account.id, kind, attempt]);

  const choose = (next: Kind) => {
    if (next !== kind) {
      setLoaded(undefined);
      setProblem(undefined);
    }
    setKind(next);
    setSector('');
    setDept('');
  };
  const shown = loaded?.entries.filter((one) => (sector === '' || one.sector === sector) && (dept === '' || one.dept === dept)) ?? [];
  const filtered = sector !== '' || dept !== '';
  const plotted = loaded && loaded.total > loaded.entries.length ? w.history.plotted(f.number(loaded.entries.length)) : w.history.allPlotted;
  return (
    <>
      <Heading title={w.history.title}>
        {loaded && loaded.total > 0 && `${w.history.lede[kind](f.number(loaded.total))} ${plotted}`}
        {origin?.asOf && ` ${w.history.asOf(f.day(origin.asOf))}`}
        {origin?.synthetic && ` ${w.history.synthetic}`}
      </Heading>
      {!account.access && <NoAccess plan={account.plan} />}
      {problem && <ProblemNotice problem={problem} at={loaded?.at} again={() => again(attempt + 1)} />}
      {account.access && (
        <div class="stack">
          <div class="row between">
            <Choice
              legend={w.history.kind}
              name="kind"
              options={[
                ['analyses', w.history.analyses],
                ['audits', w.history.audits],
              ]}
              value={kind}
              choose={choose}
              quiet
            />
            {loaded && loaded.total > 0 && (
              <div class="filters">
                <Filter label={w.history.sector} value={sector} set={setSector} options={unique(loaded.entries, 'sector').map((one) => [one, one])} />
                <Filter
                  label={w.history.departement}
                  value={dept}
                  set={setDept}
                  options={unique(loaded.entries, 'dept').map((code) => [code, `${code} ${names[code] ?? ''}`])}
                />
                <Export account={account.id} kind={kind} />
              </div>
            )}
          </div>
          {!loaded && !problem && <Waiting />}
          {loaded && loaded.total === 0 && (
            <section class="card empty">
              <CodeIcon />
              <h2>{w.history.emptyTitle}</h2>
              <p>{w.history.emptyText}</p>
            </section>
          )}
          {loaded && loaded.total > 0 && (
            <>
              {filtered && (
                <div class="row" role="status">
                  <span class="soft">{w.history.filtered(f.number(shown.length), f.number(loaded.entries.length))}</span>
                  <button type="button" class="tiny" onClick={() => choose(kind)}>
                    {w.history.reset}
                  </button>
                </div>
              )}
              <section class="card">
                <h2>{w.history.plot}</h2>
                <Plot entries={shown} />
              </section>
              <Rows key={`${kind} ${sector} ${dept}`} account={account.id} kind={kind} known={shown} total={filtered ? shown.length : loaded.total} names={names} />
            </>
          )}
        </div>
      )}
    </>
  );
}

function unique(entries: Entry[], member: 'sector' | 'dept'): string[] {
  return [...new Set(entries.map((one) => one[member]))].sort();
}

function Filter(props: { label: string; value: string; set: (value: string) => void; options: [string, string][] }) {
  const { w } = useLanguage();
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.set(event.currentTarget.value)}>
        <option value="">{w.history.all}</option>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The table: rows that are known already, and beyond them the service's own pages. */
function Rows(props: { account: string; kind: Kind; known: Entry[]; total: number; names: Record<string, string> }) {
  const [first, go] = useState(0);
  const [far, setFar] = useState<{ first: number; entries: Entry[] } | undefined>();
  const [problem, setProblem] = useState<Problem | undefined>();
  const [attempt, again] = useState(0);
  /** The page of the table that was shown last, and when it was answered. */
  const last = useRef<{ first: number; entries: Entry[]; at: number } | undefined>(undefined);
  const here = props.known.length >= Math.min(props.total, first + SIZE);
  useEffect(() => {
    if (here) {
      setProblem(undefined);
      return undefined;
    }
    const controller = new AbortController();
    page(props.account, props.kind, first, Math.min(SIZE, PAGE), controller.signal).then(
      (answer) => {
        setProblem(undefined);
        setFar({ first, entries: answer.entries });
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setProblem(error instanceof Problem ? error : new Problem('internal', 0, undefined, undefined, 0));
      },
    );
    return () => controller.abort();
  }, [first, here, attempt]);
  const entries = here ? props.known.slice(first, first + SIZE) : far?.first === first ? far.entries : undefined;
  if (entries && last.current?.entries[0] !== entries[0]) last.current = { first, entries, at: Date.now() };
  const shown = entries ? { first, entries } : problem && last.current;
  return (
    <>
      {problem && <ProblemNotice problem={problem} at={last.current?.at} again={() => again(attempt + 1)} />}
      {shown ? <Table {...shown} names={props.names} total={props.total} go={go} size={SIZE} /> : !problem && <Waiting />}
    </>
  );
}
