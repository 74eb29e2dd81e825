//! The first page of those who are not signed in, and of those who belong to no account.
import { useLocation } from 'preact-iso';
import type { SignedIn } from './api';
import { CodeIcon, KeyIcon, MapIcon } from './icons';
import { useLanguage } from './language';
import { useOutlines } from './outlines';
import { Heading } from './page';
import { signInAddress } from './session';
import welcome from './welcome-levels.json';

const LEVELS: Record<string, number> = welcome.levels;

/** What the product is, and the way in. */
export function Home({ ended }: { ended: boolean }) {
  const { w } = useLanguage();
  const { query } = useLocation();
  const outlines = useOutlines();
  return (
    <>
      {ended && (
        <div class="notice info" role="status">
          <p>{w.sessionEnded}.</p>
        </div>
      )}
      {query['problem'] !== undefined && (
        <div class="notice bad" role="alert">
          <p>
            <b>{w.failedSignIn.title}</b>
          </p>
          <p>{w.failedSignIn.text}</p>
        </div>
      )}
      <div class="grid hero">
        <div>
          <Heading title={w.home.title}>{w.home.text}</Heading>
          <div class="row">
            <a class="button primary" href={signInAddress('/')} target="_self">
              {w.signIn}
            </a>
            <a class="button" href="/docs">
              {w.home.docs}
            </a>
          </div>
        </div>
        <figure>
          <svg viewBox={outlines?.viewBox ?? '0 0 1226 1170'} role="img" aria-label={w.home.figure}>
            {Object.entries(outlines?.paths ?? {}).map(([code, path]) => (
              <path key={code} class={`d l${LEVELS[code] ?? 0}`} d={path} />
            ))}
          </svg>
          <figcaption>{w.home.figureSource}</figcaption>
        </figure>
      </div>
      <div class="grid three">
        <section class="card feature">
          <MapIcon />
          <h2>{w.home.mapTitle}</h2>
          <p>{w.home.mapText}</p>
        </section>
        <section class="card feature">
          <KeyIcon />
          <h2>{w.home.keysTitle}</h2>
          <p>{w.home.keysText}</p>
        </section>
        <section class="card feature">
          <CodeIcon />
          <h2>{w.home.apiTitle}</h2>
          <p>{w.home.apiText}</p>
        </section>
      </div>
    </>
  );
}

/** Signed in, but a member of nothing: what to tell whom. */
export function NoAccount({ session }: { session: SignedIn }) {
  const { w } = useLanguage();
  return (
    <div class="card empty">
      <Heading title={w.noAccount.title} />
      <p>{w.noAccount.text}</p>
      <p>
        <code class="break" translate={false}>
          {session.subject}
        </code>
      </p>
    </div>
  );
}
