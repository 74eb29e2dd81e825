//! The whole history as a file for spreadsheets, with its progress and a way to stop.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem } from '../api';
import { saveFile } from '../clipboard';
import { useLanguage } from '../language';
import { problemText } from '../page';
import { line, sheet } from '../sheet';
import { walk, type Kind } from './pages';

type State = { at: 'idle' } | { at: 'running'; rows: number } | { at: 'done'; rows: number } | { at: 'failed'; problem: Problem };

/** A button that becomes its own progress. */
export function Export({ account, kind }: { account: string; kind: Kind }) {
  const { w, f, lang } = useLanguage();
  const [state, set] = useState<State>({ at: 'idle' });
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => {
    set({ at: 'idle' });
    return () => running.current?.abort();
  }, [account, kind]);
  const start = async () => {
    const controller = new AbortController();
    running.current = controller;
    const words = w.history;
    const parts = sheet([['id', words.company, words.sector, words.departement, words.score, words.rating, words.date]], lang);
    let rows = 0;
    set({ at: 'running', rows });
    try {
      await walk(account, kind, controller.signal, (entries) => {
        parts.push(entries.map((one) => line([one.id, one.company, one.sector, one.dept, one.score, one.rating, one.at], lang)).join(''));
        rows += entries.length;
        set({ at: 'running', rows });
      });
      saveFile(parts, 'text/csv;charset=utf-8', `${kind}.csv`);
      set({ at: 'done', rows });
    } catch (error) {
      if (controller.signal.aborted) set({ at: 'idle' });
      else set({ at: 'failed', problem: error instanceof Problem ? error : new Problem('internal', 0, undefined, undefined, 0) });
    }
  };
  return (
    <div class="row">
      <span role="status" class="small soft">
        {state.at === 'running' && w.history.csvRunning(f.number(state.rows))}
        {state.at === 'done' && w.history.csvDone(f.number(state.rows))}
        {state.at === 'failed' && problemText(w, state.problem)}
      </span>
      {state.at === 'running' ? (
        <button type="button" onClick={() => running.current?.abort()}>
          {w.history.csvStop}
        </button>
      ) : (
        <button type="button" onClick={() => void start()}>
          {w.history.csv}
        </button>
      )}
    </div>
  );
}
