//! Where the figures come from: datasets of the account, what the pages contain, accessibility.
import { useLocation } from 'preact-iso';
import { useAnswer } from './answer';
import { of, type Source, type SourceList } from './api';
import { useLanguage } from './language';
import { Heading, NoAccess, ProblemNotice, Waiting } from './page';
import { accountOf, signInAddress, useSession } from './session';

/** The page for everybody; its table for those who are signed in. */
export default function SourcesPage() {
  const { w } = useLanguage();
  const { path } = useLocation();
  const { session } = useSession();
  const account = session?.signedIn ? accountOf(session, path) : undefined;
  const answer = useAnswer<SourceList>(account?.access ? of(account.id, 'sources') : undefined);
  return (
    <>
      <Heading title={w.sources.title}>{w.sources.lede}</Heading>
      <div class="stack">
        {answer.problem && <ProblemNotice problem={answer.problem} at={answer.at} again={() => void answer.reload()} />}
        {session && !session.signedIn && (
          <div class="notice info">
            <div class="row">
              <p>{w.sources.signedOut}</p>
              <a class="button tiny" href={signInAddress(path)} target="_self">
                {w.signIn}
              </a>
            </div>
          </div>
        )}
        {account && !account.access && <NoAccess plan={account.plan} />}
        {account?.access && !answer.data && !answer.problem && <Waiting />}
        {answer.data && <Datasets sources={answer.data.data} />}
        <section class="card">
          <h2>{w.sources.fixed}</h2>
          <ul>
            <li>{w.sources.insee}</li>
            <li>{w.sources.outlines}</li>
            <li>{w.sources.levels}</li>
          </ul>
        </section>
        <section class="card">
          <h2>{w.sources.a11y}</h2>
          <p>{w.sources.a11yText}</p>
          <p>{w.sources.a11yContact}</p>
        </section>
      </div>
    </>
  );
}

function Datasets({ sources }: { sources: Source[] }) {
  const { w, f } = useLanguage();
  if (sources.length === 0) return <p class="soft">{w.sources.none}</p>;
  return (
    <section class="card tablecard">
      <div class="row">
        <h2 id="datasets">{w.sources.datasets}</h2>
      </div>
      <div class="scroll">
        <table class="cards" aria-labelledby="datasets">
          <thead>
            <tr>
              <th scope="col">{w.sources.dataset}</th>
              <th scope="col">{w.sources.source}</th>
              <th scope="col">{w.sources.licence}</th>
              <th scope="col">{w.sources.asOf}</th>
              <th scope="col" class="n">
                {w.sources.records}
              </th>
              <th scope="col">{w.sources.nature}</th>
              <th scope="col">{w.sources.loaded}</th>
            </tr>
          </thead>
          <tbody>
            {sources.map((source) => (
              <Dataset key={source.dataset} source={source} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );

  function Dataset({ source }: { source: Source }) {
    const names: Record<string, string> = w.sources.names;
    const link = source.sourceUrl !== null && /^https?:\/\//.test(source.sourceUrl) ? source.sourceUrl : undefined;
    const who = source.source ?? w.sources.unknown;
    return (
      <tr>
        <th scope="row">{names[source.dataset] ?? source.dataset}</th>
        <td data-label={w.sources.source}>
          {link === undefined ? (
            who
          ) : (
            <a href={link} rel="noreferrer">
              {who}
            </a>
          )}
        </td>
        <td data-label={w.sources.licence}>{source.licence ?? w.sources.unknown}</td>
        <td data-label={w.sources.asOf}>{source.asOf === null ? w.sources.unknown : f.day(source.asOf)}</td>
        <td data-label={w.sources.records} class="n">
          {f.number(source.records)}
        </td>
        <td data-label={w.sources.nature}>
          <span>
            <span class={source.synthetic ? 'state wait' : 'state ok'}>{source.synthetic ? w.sources.synthetic : w.sources.measured}</span>
            {source.derivedLevels.length > 0 && <span class="mark">{w.sources.derived(source.derivedLevels.length)}</span>}
            {source.keptLevels.length > 0 && <span class="mark">{w.sources.kept(source.keptLevels.length)}</span>}
          </span>
        </td>
        <td data-label={w.sources.loaded} class="soft">
          {f.time(source.loadedAt)}
        </td>
      </tr>
    );
  }
}
