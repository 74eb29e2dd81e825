//! The API's reference: first steps, recipes, and every operation of the gate's own description.
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { CopyButton } from './clipboard';
import { examples, header, isOpen, operations, problems, type Document, type Operation } from './docs/openapi';
import { Prose } from './docs/prose';
import { recipes } from './docs/recipes';
import './docs/style.css';
import { TryIt } from './docs/try';
import { Problem } from './api';
import { useLanguage } from './language';
import { Heading, ProblemNotice, Waiting } from './page';
import { accountOf, useSession } from './session';

/** The page for everybody: the description needs no key. */
export default function DocsPage() {
  const { w } = useLanguage();
  const { path } = useLocation();
  const { session } = useSession();
  const [document, setDocument] = useState<Document | undefined>();
  const [problem, setProblem] = useState<Problem | undefined>();
  const [apiKey, setKey] = useState('');
  const load = async () => {
    setProblem(undefined);
    try {
      const answer = await fetch('/api/v1/openapi.json', { credentials: 'omit' });
      if (!answer.ok) throw new Problem('upstream_unavailable', answer.status, undefined, undefined, 0);
      setDocument((await answer.json()) as Document);
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem('network', 0, undefined, undefined, 0));
    }
  };
  useEffect(() => {
    void load();
    const forget = () => setKey('');
    window.addEventListener('pagehide', forget);
    return () => window.removeEventListener('pagehide', forget);
  }, []);
  const account = session?.signedIn ? accountOf(session, path) : undefined;
  const prefix = session?.keyPrefix ?? 'wdk';
  const all = document ? operations(document) : [];
  return (
    <>
      <Heading title={w.docs.title}>{w.docs.lede}</Heading>
      <div class="grid docs">
        <nav class="toc" aria-label={w.docs.contents}>
          <ul>
            <li>
              <a href="#start">{w.docs.start}</a>
            </li>
            <li>
              <a href="#recipes">{w.docs.recipes}</a>
            </li>
            {all.map(({ path: of }) => (
              <li key={of}>
                <a href={`#${anchor(of)}`}>{of.replace('/api/v1', '')}</a>
              </li>
            ))}
            <li>
              <a href="#scanners">{w.docs.scanners}</a>
            </li>
          </ul>
        </nav>
        <div class="stack">
          <section class="card stack" id="start">
            <h2>{w.docs.start}</h2>
            <p>{w.docs.startText}</p>
            <pre class="block">{`Authorization: Bearer ${prefix}_…`}</pre>
            {account && (
              <p>
                <a href={`/a/${encodeURIComponent(account.id)}/settings/api`}>{w.docs.startKeys}</a>
              </p>
            )}
            {document?.info.description !== undefined && (
              <div lang="en">
                {document.info.description.split('\n\n').map((paragraph) => (
                  <p key={paragraph}>
                    <Prose text={paragraph} />
                  </p>
                ))}
              </div>
            )}
          </section>
          <section class="card stack" id="recipes">
            <h2>{w.docs.recipes}</h2>
            <p>{w.docs.recipesText}</p>
            {recipes(location.origin).map(({ name, text, pandas }) => (
              <div key={name} class="stack tight">
                <div class="row between">
                  <h3>{w.docs.recipe[name]}</h3>
                  <CopyButton text={text} copy={w.docs.copy} copied={w.docs.copied} failed={w.keys.copyFailed} class="tiny" />
                </div>
                <div class="block" tabIndex={0} role="region" aria-label={w.docs.recipe[name]}>
                  <pre data-recipe={name}>{text}</pre>
                </div>
                {pandas && <code class="small break">pandas.{pandas}</code>}
              </div>
            ))}
          </section>
          {problem && <ProblemNotice problem={problem} again={() => void load()} />}
          {!document && !problem && <Waiting />}
          {document && all.map(({ path: of, of: operation }) => <Reference key={of} document={document} path={of} of={operation} apiKey={apiKey} setKey={setKey} />)}
          <section class="card stack" id="scanners">
            <h2>{w.docs.scanners}</h2>
            <p>{w.docs.scannersText}</p>
            <div class="block" tabIndex={0} role="region" aria-label={w.docs.scanners}>
              <pre data-pattern>{`\\b${prefix}_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\\b`}</pre>
            </div>
          </section>
        </div>
      </div>
    </>
  );
}

type Part = { document: Document; path: string; of: Operation; apiKey: string; setKey: (key: string) => void };

function Reference({ document, path, of, apiKey, setKey }: Part) {
  const { w } = useLanguage();
  const shown = examples(of);
  const headers = Object.entries(of.responses['200']?.headers ?? {});
  return (
    <section class="card stack" id={anchor(path)} aria-labelledby={`${anchor(path)}-title`}>
      <div>
        <h2 id={`${anchor(path)}-title`} class="row">
          <span class="method">GET</span> <span class="path">{path}</span>
        </h2>
        <p lang="en">
          {of.summary}
          {isOpen(of) && ` · ${w.docs.noKey}`}
        </p>
      </div>
      {(of.parameters ?? []).length > 0 && (
        <div class="scroll">
          <table class="cards">
            <caption>{w.docs.parameters}</caption>
            <thead>
              <tr>
                <th scope="col">{w.docs.parameter}</th>
                <th scope="col">{w.docs.meaning}</th>
              </tr>
            </thead>
            <tbody>
              {(of.parameters ?? []).map((parameter) => (
                <tr key={parameter.name}>
                  <th scope="row">
                    <code>{parameter.name}</code> <span class="small soft">{w.docs.place[parameter.in]}</span>
                  </th>
                  <td lang="en">
                    <Prose text={parameter.description ?? ''} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown.map(({ type, text }) => (
        <details class="more" key={type} open={type === 'application/json'}>
          <summary>
            {w.docs.example} <span class="soft small">{type}</span>
          </summary>
          <div class="block" tabIndex={0} role="region" aria-label={`${w.docs.example} ${path} ${type}`}>
            <pre>{text}</pre>
          </div>
        </details>
      ))}
      {headers.length > 0 && (
        <details class="more">
          <summary>{w.docs.headers}</summary>
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">{w.docs.header}</th>
                <th scope="col">{w.docs.meaning}</th>
              </tr>
            </thead>
            <tbody>
              {headers.map(([name, found]) => (
                <tr key={name}>
                  <th scope="row">
                    <code>{name}</code>
                  </th>
                  <td lang="en">
                    <Prose text={header(document, found).description ?? ''} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
      {problems(of).length > 0 && (
        <details class="more">
          <summary>{w.docs.problems}</summary>
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">{w.docs.status}</th>
                <th scope="col">{w.docs.code}</th>
              </tr>
            </thead>
            <tbody>
              {problems(of).map(({ status, text }) => (
                <tr key={status}>
                  <th scope="row" class="tab">
                    {status}
                  </th>
                  <td lang="en">
                    <Prose text={text} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
      <details class="more" data-try={path}>
        <summary>{w.docs.tryTitle}</summary>
        <TryIt path={path} of={of} apiKey={apiKey} setKey={setKey} />
      </details>
    </section>
  );
}

function anchor(path: string): string {
  return path.replace(/^\//, '').replaceAll(/[^a-z0-9]+/gi, '-');
}
