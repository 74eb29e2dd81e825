//! The pages' entrance: providers, routes, and what happens when another version has replaced the assets.
import { render } from 'preact';
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import type { Account, SignedIn } from './api';
import { Frame } from './frame';
import { Home, NoAccount } from './home';
import { LanguageProvider } from './language';
import MapPage from './map';
import { NotFound, SignInCard, Unavailable, Waiting } from './page';
import { later, loadAgain } from './reload';
import { accountOf, rememberAccount, SessionProvider, useSession } from './session';
import './style.css';
import { showTheme } from './theme';

const KeysPage = later(() => import('./keys'));
const HistoryPage = later(() => import('./history'));
const DocsPage = later(() => import('./docs'));
const SourcesPage = later(() => import('./sources'));

/** Links to these paths change the page; all others, sign-in first of all, leave it. */
const PAGES = /^\/(?:$|[?#]|a\/|docs|sources)/;

type AccountPage = (props: { account: Account; session: SignedIn }) => preact.JSX.Element | null;

/** A page of one account: of this session, or nobody's. */
function Of({ page: Page }: { page: AccountPage }) {
  const { path } = useLocation();
  const { session, problem, ended, reload } = useSession();
  const account = session?.signedIn ? accountOf(session, path) : undefined;
  useEffect(() => {
    if (account) rememberAccount(account.id);
  }, [account?.id]);
  if (!session) return problem ? <Unavailable problem={problem} again={() => void reload()} /> : <Waiting />;
  if (!session.signedIn) return <SignInCard path={path} ended={ended} />;
  if (!account) return session.accounts.length === 0 ? <NoAccount session={session} /> : <NotFound />;
  return <Page key={account.id} account={account} session={session} />;
}

function Start() {
  const { session, problem, ended, reload } = useSession();
  const { path } = useLocation();
  if (!session) return problem ? <Unavailable problem={problem} again={() => void reload()} /> : <Waiting />;
  if (!session.signedIn) return <Home ended={ended} />;
  const account = accountOf(session, path);
  return account ? <MapPage key={account.id} account={account} session={session} /> : <NoAccount session={session} />;
}

const MapOf = () => <Of page={MapPage} />;
const KeysOf = () => <Of page={KeysPage} />;
const HistoryOf = () => <Of page={HistoryPage} />;

function App() {
  return (
    <LanguageProvider>
      <LocationProvider scope={PAGES}>
        <SessionProvider>
          <Frame>
            <ErrorBoundary>
              <Router>
                <Route path="/" component={Start} />
                <Route path="/a/:account/map" component={MapOf} />
                <Route path="/a/:account/history" component={HistoryOf} />
                <Route path="/a/:account/settings/api" component={KeysOf} />
                <Route path="/docs" component={DocsPage} />
                <Route path="/sources" component={SourcesPage} />
                <Route default component={NotFound} />
              </Router>
            </ErrorBoundary>
          </Frame>
        </SessionProvider>
      </LocationProvider>
    </LanguageProvider>
  );
}

// A rollout may have answered the HTML from one version and the style from the other.
window.addEventListener('load', () => {
  const style = document.querySelector<HTMLLinkElement>('link[rel=stylesheet]');
  if (style && !style.sheet) loadAgain();
});

showTheme();
const app = document.getElementById('app');
if (app) render(<App />, app);
