//! The frame around every page: navigation, account, language, theme, sign-out, sources.
import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, type Account, type SignedIn } from './api';
import { Drop } from './icons';
import { useLanguage, type Lang } from './language';
import { problemText } from './page';
import { accountOf, rememberAccount, signInAddress, useSession } from './session';
import { chooseTheme, theme, type Theme } from './theme';

/** Header, page and footer. */
export function Frame({ children }: { children: ComponentChildren }) {
  const { w } = useLanguage();
  const { path } = useLocation();
  const { session } = useSession();
  const account = session?.signedIn ? accountOf(session, path) : undefined;
  return (
    <>
      <a class="skip" href="#main">
        {w.skip}
      </a>
      <header class="bar">
        <div>
          <a class="logo" href="/">
            <Drop />
            <span>Water Data</span>
          </a>
          <Navigation account={account} path={path} />
          <div class="who">
            {session?.signedIn && account && <AccountChip session={session} account={account} path={path} />}
            {session && !session.signedIn && path !== '/' && (
              <a class="button tiny" href={signInAddress(path)} target="_self">
                {w.signIn}
              </a>
            )}
            <Settings session={session?.signedIn ? session : undefined} />
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Footer />
    </>
  );
}

function Navigation({ account, path }: { account: Account | undefined; path: string }) {
  const { w } = useLanguage();
  const own = account ? `/a/${encodeURIComponent(account.id)}` : undefined;
  const links: [string, string][] = [
    ...(own === undefined
      ? []
      : ([
          [`${own}/map`, w.nav.map],
          [`${own}/history`, w.nav.history],
          [`${own}/settings/api`, w.nav.keys],
        ] as [string, string][])),
    ['/docs', w.nav.docs],
    ['/sources', w.nav.sources],
  ];
  return (
    <nav aria-label={w.nav.label}>
      {links.map(([href, text]) => (
        <a key={href} href={href} aria-current={path === href || (path === '/' && href === `${own}/map`) ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

function AccountChip({ session, account, path }: { session: SignedIn; account: Account; path: string }) {
  const { w } = useLanguage();
  const { route } = useLocation();
  const label = (of: Account) => `${of.id} · ${of.plan}`;
  if (session.accounts.length < 2) {
    return (
      <span class="chip" title={label(account)}>
        <span class="hidden">{w.account} </span>
        {label(account)}
      </span>
    );
  }
  const go = (id: string) => {
    rememberAccount(id);
    const page = /^\/a\/[^/]+\/(.+)$/.exec(path)?.[1] ?? 'map';
    route(`/a/${encodeURIComponent(id)}/${page}`);
  };
  return (
    <select class="chip" aria-label={w.account} value={account.id} onChange={(event) => go(event.currentTarget.value)}>
      {session.accounts.map((one) => (
        <option key={one.id} value={one.id}>
          {label(one)}
        </option>
      ))}
    </select>
  );
}

function Settings({ session }: { session: SignedIn | undefined }) {
  const { w, lang, choose } = useLanguage();
  const menu = useRef<HTMLDetailsElement>(null);
  const [shown, show] = useState<Theme>(theme);
  useEffect(() => {
    const close = (event: Event) => {
      const escape = event instanceof KeyboardEvent && event.key === 'Escape';
      if (!menu.current?.open) return;
      if (escape) menu.current.querySelector('summary')?.focus();
      if (escape || !(event instanceof KeyboardEvent || menu.current.contains(event.target as Node))) menu.current.open = false;
    };
    document.addEventListener('keydown', close);
    document.addEventListener('pointerdown', close);
    return () => {
      document.removeEventListener('keydown', close);
      document.removeEventListener('pointerdown', close);
    };
  }, []);
  const themes: [Theme, string][] = [
    ['auto', w.theme.auto],
    ['light', w.theme.light],
    ['dark', w.theme.dark],
  ];
  const languages: [Lang, string][] = [
    ['fr', 'Français'],
    ['en', 'English'],
  ];
  return (
    <details class="menu" ref={menu}>
      <summary>
        <span class="hidden">{session ? w.menu : w.settings} </span>
        <span aria-hidden="true" class="nowrap">{lang.toUpperCase()} ▾</span>
      </summary>
      <div>
        {session && (
          <p>
            <b class="break">{session.name ?? session.subject}</b>
            <br />
            <span class="small soft break">{w.subject(session.subject)}</span>
          </p>
        )}
        <Choice legend={w.language} name="language" options={languages} value={lang} choose={choose} />
        <Choice
          legend={w.theme.label}
          name="theme"
          options={themes}
          value={shown}
          choose={(choice) => {
            chooseTheme(choice);
            show(choice);
          }}
        />
        {session && <SignOut />}
      </div>
    </details>
  );
}

/** One of a few, as a row of radio buttons. */
export function Choice<T extends string>(props: {
  legend: string;
  name: string;
  options: [T, string][];
  value: T;
  choose: (value: T) => void;
  quiet?: boolean;
}) {
  return (
    <fieldset class={props.quiet ? 'quiet' : undefined}>
      <legend class={props.quiet ? 'hidden' : undefined}>{props.legend}</legend>
      <div class="seg">
        {props.options.map(([value, text]) => (
          <label key={value}>
            <input type="radio" name={props.name} value={value} checked={props.value === value} onChange={() => props.choose(value)} />
            <span lang={value === 'fr' || value === 'en' ? value : undefined}>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function SignOut() {
  const { w } = useLanguage();
  const [failed, fail] = useState<Problem | undefined>();
  const leave = async () => {
    try {
      const answer = await fetch('/auth/sign-out', { method: 'POST', credentials: 'same-origin' });
      if (!answer.ok && answer.status !== 401) throw new Problem('sign_out_failed', answer.status, undefined, undefined, 0);
      const body: unknown = await answer.json().catch(() => ({}));
      const next = (body as { next?: unknown }).next;
      location.assign(typeof next === 'string' ? next : '/');
    } catch (error) {
      fail(error instanceof Problem ? error : new Problem('network', 0, undefined, undefined, 0));
    }
  };
  return (
    <>
      {failed && (
        <p class="wrong" role="alert">
          {problemText(w, failed)}
        </p>
      )}
      <button type="button" onClick={() => void leave()}>
        {w.signOut}
      </button>
    </>
  );
}

function Footer() {
  const { w } = useLanguage();
  return (
    <footer>
      <div>
        <p>{w.footer}</p>
        <p>
          <a href="/sources">{w.footerLink}</a>
        </p>
      </div>
    </footer>
  );
}
