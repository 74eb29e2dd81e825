//! A key just made: its text, "I have saved it", and how it takes effect.
//!
//! The text is this component's alone. It is forgotten when the dialog closes and when the page
//! is hidden for good; the portal gets the hash only, after the holder has said "saved".
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, type Key, type KeyList } from '../api';
import { CopyButton, saveFile } from '../clipboard';
import type { NewKey } from '../key';
import { useLanguage } from '../language';
import { problemText } from '../page';
import { holdPage, signInAddress } from '../session';
import { reasonText } from '../words/reasons';
import { settle } from './settle';

export type MakingProps = {
  account: string;
  title: string;
  made: NewKey;
  /** Sends the hash; the same key may be sent again. */
  send: () => Promise<Key>;
  seen: (list: KeyList) => void;
  /** Told when the list may no longer be what the page shows. */
  changed: () => void;
  close: () => void;
};

type Stage =
  | { at: 'shown' }
  | { at: 'sending' }
  | { at: 'failed'; problem: Problem }
  | { at: 'waiting'; long: boolean; key: Key; problem?: Problem }
  | { at: 'settled'; key: Key; seconds: number };

/** The second step of creating and of replacing a key. */
export function Making({ account, title, made, send, seen, changed, close }: MakingProps) {
  const { w, f } = useLanguage();
  const [stage, set] = useState<Stage>({ at: 'shown' });
  const heading = useRef<HTMLHeadingElement>(null);
  const stopping = useRef(new AbortController());
  useEffect(() => {
    heading.current?.focus();
    const release = holdPage();
    window.addEventListener('pagehide', close);
    return () => {
      stopping.current.abort();
      window.removeEventListener('pagehide', close);
      release();
    };
  }, []);

  const publish = async () => {
    set({ at: 'sending' });
    const begun = performance.now();
    const { signal } = stopping.current;
    try {
      const sent = await send();
      const key = sent.state === 'publishing' ? await published(sent, signal) : sent;
      if (key && !signal.aborted) set({ at: 'settled', key, seconds: (performance.now() - begun) / 1000 });
    } catch (error) {
      if (signal.aborted) return;
      const problem = error instanceof Problem ? error : new Problem('internal', 0, undefined, undefined, 0);
      set({ at: 'failed', problem });
      if (problem.status === 409) changed();
    }
  };

  /** The key as it is once it is no longer on its way to the gates; tells how the wait goes. */
  const published = async (sent: Key, signal: AbortSignal): Promise<Key | undefined> => {
    set({ at: 'waiting', long: false, key: sent });
    const goesOn = (news: { long?: boolean; key?: Key; problem?: Problem | undefined }) =>
      set((before) => (before.at === 'waiting' ? { ...before, ...news } : before));
    const slow = setTimeout(() => goesOn({ long: true }), 10_000);
    const current = (one: Key | undefined) => one !== undefined && (one.keyId !== made.keyId || one.state !== 'publishing');
    try {
      return await settle(account, sent.name, current, {
        signal,
        seen: (list, key) => {
          seen(list);
          if (key) goesOn({ key, problem: undefined });
        },
        missed: (problem) => goesOn({ problem }),
      });
    } finally {
      clearTimeout(slow);
    }
  };

  const saved = stage.at === 'waiting' || stage.at === 'settled';
  const origin = location.origin;
  return (
    <div class="stack">
      <div>
        <h2 ref={heading} tabIndex={-1}>
          {w.keys.yourKey(title)}
        </h2>
        <p class="soft">{w.keys.yourKeyText(account)}</p>
      </div>
      <code class="keytext" translate={false} aria-label={w.keys.keyText} role="group" data-testid="key-text">
        {made.text}
      </code>
      <div class="row">
        <CopyButton text={made.text} copy={w.keys.copy} copied={w.keys.copied} failed={w.keys.copyFailed} />
        <button type="button" onClick={() => saveFile([`${made.text}\n`], 'text/plain', w.keys.fileName(made.keyId))}>
          {w.keys.saveFile}
        </button>
      </div>
      <div role="status" class="stagebox">
        {stage.at === 'shown' && <p class="note">{w.keys.notYet}</p>}
        {stage.at === 'sending' && <span class="state wait">{w.keys.sending}</span>}
        {stage.at === 'waiting' && <Publishing stage={stage} />}
        {stage.at === 'settled' && <Settled stage={stage} words={w.keys} number={f.number} />}
      </div>
      {stage.at === 'failed' && (
        <div class="notice bad" role="alert">
          {stage.problem.status === 401 ? (
            <>
              <p>{w.keys.signInThenRetry}</p>
              <p>
                <a href={signInAddress('/docs')} target="_blank" rel="opener">
                  {w.keys.signInElsewhere}
                </a>
              </p>
            </>
          ) : (
            <p>{stage.problem.field === 'expiresAt' ? w.keys.expiryBeyond : problemText(w, stage.problem)}</p>
          )}
        </div>
      )}
      {saved && (
        <div class="note">
          <p>{w.keys.tryIt}</p>
          <code class="break">{`curl -H "Authorization: Bearer $WATER_KEY" "${origin}/api/v1/stress?dept=34"`}</code>
        </div>
      )}
      <div class="foot">
        {saved ? (
          <button type="button" class="primary" onClick={close}>
            {w.close}
          </button>
        ) : (
          <>
            <button type="button" onClick={close}>
              {w.cancel}
            </button>
            <button type="button" class="primary" disabled={stage.at === 'sending'} onClick={() => void publish()}>
              {stage.at === 'failed' ? w.keys.retry : w.keys.saved}
            </button>
          </>
        )}
      </div>
    </div>
  );
}

/** What the wait for the gates is about, and what stands in its way. */
function Publishing({ stage: { long, key, problem } }: { stage: { long: boolean; key: Key; problem?: Problem } }) {
  const { w, lang } = useLanguage();
  const gates = key.waitingGates ?? 0;
  return (
    <>
      {long ? <p class="note">{w.keys.publishingLong}</p> : <span class="state wait">{w.keys.publishing}</span>}
      {(gates > 0 || long) && (
        <p class="small soft">
          {long && reasonText(lang, key)} {gates > 0 && w.keys.waitingGates(gates)}
        </p>
      )}
      {problem && <p class="small">{problemText(w, problem)}</p>}
    </>
  );
}

function Settled(props: {
  stage: { key: Key; seconds: number };
  words: ReturnType<typeof useLanguage>['w']['keys'];
  number: (value: number, decimals?: number) => string;
}) {
  const { key, seconds } = props.stage;
  if (key.state === 'active') return <span class="state ok">{props.words.works(props.number(seconds, 1))}</span>;
  return <span class="state wait">{props.words.settledOtherwise(props.words.states[key.state])}</span>;
}
