//! Hooks that fetch: an answer with its problem and time, and a repeated question while the page is seen.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { json, Problem } from './api';

/** What is known of a path: the last good answer stays while a newer one fails. */
export type Answer<T> = {
  data: T | undefined;
  problem: Problem | undefined;
  /** When `data` was answered, in milliseconds since the epoch. */
  at: number;
  /** Asks again; as a `poll` when nobody asked the page to. */
  reload: (poll?: boolean) => Promise<void>;
};

/** Asks for a path, again whenever it changes; `undefined` asks nothing. */
export function useAnswer<T>(path: string | undefined): Answer<T> {
  const [state, set] = useState<{ path?: string; data?: T; problem?: Problem; at: number }>({ at: 0 });
  const asked = useRef<AbortController | null>(null);
  const reload = useCallback(async (poll = false) => {
    asked.current?.abort();
    if (path === undefined) return;
    const controller = new AbortController();
    asked.current = controller;
    try {
      const data = await json<T>(path, { signal: controller.signal, poll });
      set({ path, data, at: Date.now() });
    } catch (error) {
      if (controller.signal.aborted) return;
      const problem = error instanceof Problem ? error : new Problem('internal', 0, undefined, undefined, 0);
      set((before) => (before.path === path ? { ...before, problem } : { path, problem, at: 0 }));
    }
  }, [path]);
  useEffect(() => {
    void reload();
    return () => asked.current?.abort();
  }, [reload]);
  const current = state.path === path;
  return {
    data: current ? state.data : undefined,
    problem: current ? state.problem : undefined,
    at: state.at,
    reload,
  };
}

/** Polls every `seconds`, and when the page is seen again, but never while it is hidden. */
export function useRepeated({ reload }: Answer<unknown>, seconds: number): void {
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    const seen = () => document.visibilityState === 'visible' && void latest.current(true);
    const timer = setInterval(seen, seconds * 1000);
    document.addEventListener('visibilitychange', seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [seconds]);
}
