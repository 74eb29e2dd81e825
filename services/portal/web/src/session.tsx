//! Who is signed in: asked once, again when the page comes back, and when an answer says 401.
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { useAnswer } from './answer';
import { SESSION_ENDED, type Account, type Problem, type Session, type SignedIn } from './api';
import { keep, kept } from './preference';

export type SessionState = {
  /** `undefined` until the first answer. */
  session: Session | undefined;
  problem: Problem | undefined;
  /** A session that this page had has ended. */
  ended: boolean;
  reload: () => Promise<void>;
};

const Context = createContext<SessionState | undefined>(undefined);
let holders = 0;

/** Keeps the page as it is although the session ends: it shows a key's text that is nowhere else. */
export function holdPage(): () => void {
  holders += 1;
  return () => {
    holders -= 1;
  };
}

/** Gives everything below it the session. */
export function SessionProvider({ children }: { children: ComponentChildren }) {
  const { data, problem, reload } = useAnswer<Session>('/session');
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    const refresh = () => void (holders === 0 && reload());
    const onEnded = () => {
      setEnded(true);
      refresh();
    };
    // A page from the back-forward cache may show what its session no longer allows.
    const onShow = (event: PageTransitionEvent) => event.persisted && refresh();
    const onSeen = () => document.visibilityState === 'visible' && refresh();
    window.addEventListener(SESSION_ENDED, onEnded);
    window.addEventListener('pageshow', onShow);
    document.addEventListener('visibilitychange', onSeen);
    return () => {
      window.removeEventListener(SESSION_ENDED, onEnded);
      window.removeEventListener('pageshow', onShow);
      document.removeEventListener('visibilitychange', onSeen);
    };
  }, [reload]);
  useEffect(() => {
    if (data?.signedIn) setEnded(false);
  }, [data]);
  return <Context.Provider value={{ session: data, problem, ended, reload }}>{children}</Context.Provider>;
}

/** The session. */
export function useSession(): SessionState {
  const state = useContext(Context);
  if (!state) throw new Error('no SessionProvider');
  return state;
}

/** The account that the address names, else the last one looked at, else the first. */
export function accountOf(session: SignedIn, path: string): Account | undefined {
  const named = /^\/a\/([^/]+)/.exec(path)?.[1];
  if (named !== undefined) return session.accounts.find(({ id }) => id === decodeURIComponent(named));
  return session.accounts.find(({ id }) => id === kept('account')) ?? session.accounts[0];
}

/** Keeps the account that is looked at, for pages whose address names none. */
export function rememberAccount(id: string): void {
  keep('account', id);
}

/** Where a sign-in begins that ends on this path. */
export function signInAddress(path: string): string {
  return `/auth/sign-in?to=${encodeURIComponent(path)}`;
}
