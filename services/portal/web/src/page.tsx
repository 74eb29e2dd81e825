//! What every page is made of: its heading, and what it says when there is nothing to show.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Problem } from './api';
import { useLanguage } from './language';
import { signInAddress } from './session';

let first = true;

/** The heading of a page: names the document, and takes the focus when the page has changed. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – Water Data`;
  }, [title]);
  useEffect(() => {
    if (!first) heading.current?.focus();
    first = false;
  }, []);
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children !== undefined && <p class="lede">{children}</p>}
    </>
  );
}

/** A problem in the reader's words, with what to do, and when the shown data was answered. */
export function ProblemNotice({ problem, at, again }: { problem: Problem; at?: number; again?: () => void }) {
  const { w, f } = useLanguage();
  return (
    <div class="notice bad" role="alert">
      <div class="row">
        <div>
          <p>{problemText(w, problem)}</p>
          {at !== undefined && at > 0 && <p class="small">{w.lastAnswer(f.time(at))}</p>}
          {problem.requestId !== undefined && <p class="small soft break">{w.requestId(problem.requestId)}</p>}
        </div>
        {again && (
          <button type="button" class="tiny" onClick={again}>
            {w.tryAgain}
          </button>
        )}
      </div>
    </div>
  );
}

/** The page's words for a problem's code; of a rule of the platform the problem's own, which ask for the request's number. */
export function problemText(w: ReturnType<typeof useLanguage>['w'], problem: Problem): string {
  const known: Record<string, string> = w.problems;
  const { detail, requestId } = problem;
  if (problem.code === 'refused_by_platform' && detail !== undefined) return `${detail} ${w.requestId(requestId ?? '')}`;
  const text = known[problem.code] ?? (problem.status >= 500 || problem.status === 0 ? w.problems.internal : w.problems.refused);
  return problem.retryAfter > 5 ? `${text} ${w.retryIn(problem.retryAfter)}` : text;
}

/** A page that cannot be shown at all, for now. */
export function Unavailable({ problem, again }: { problem: Problem; again: () => void }) {
  const { w } = useLanguage();
  return (
    <>
      <Heading title={w.unavailable} />
      <ProblemNotice problem={problem} again={again} />
    </>
  );
}

/** Asks to sign in, and comes back to this path. Only a click goes to the provider. */
export function SignInCard({ path, ended }: { path: string; ended: boolean }) {
  const { w } = useLanguage();
  return (
    <div class="card empty">
      <Heading title={ended ? w.sessionEnded : w.signInNeeded} />
      <p>{w.signInText}</p>
      <a class="button primary" href={signInAddress(path)} target="_self">
        {w.signIn}
      </a>
    </div>
  );
}

/** What an account sees whose plan has no access. */
export function NoAccess({ plan }: { plan: string }) {
  const { w } = useLanguage();
  return (
    <div class="notice info">
      <p>
        <b>{w.noAccess.title(plan)}</b>
      </p>
      <p>{w.noAccess.text}</p>
    </div>
  );
}

/** Shown where there is nothing, for this reader or at all. */
export function NotFound() {
  const { w } = useLanguage();
  return (
    <div class="card empty">
      <Heading title={w.notFound.title} />
      <p>{w.notFound.text}</p>
      <a class="button" href="/">
        {w.notFound.home}
      </a>
    </div>
  );
}

/** Waiting for an answer. */
export function Waiting() {
  const { w } = useLanguage();
  return (
    <p class="wait-text" role="status">
      {w.loading}
    </p>
  );
}
