//! The cluster under test: what `cargo dev env` tells of it, and what tests ask of it besides the browser.
import { execFileSync } from 'node:child_process';

export type Person = {
  email: string;
  name: string;
  password: string;
  accounts: { id: string; plan: string; role: 'manager' | 'viewer' }[];
};

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`there is no cluster to test (${name} is not set): run eval "$(cargo dev env)"`);
  return value;
}

const portal = variable('WATER_PORTAL_URL');
const host = new URL(portal).hostname;
const root = process.getuid?.() === 0;

export const cluster = {
  portal,
  issuer: variable('WATER_OIDC_ISSUER'),
  folder: variable('WATER_BROWSER_FOLDER'),
  chromium: variable('WATER_CHROMIUM'),
  chromiumArguments: [
    `--host-resolver-rules=${variable('WATER_HOST_RULES')}`,
    `--ignore-certificate-errors-spki-list=${variable('WATER_SPKI_FINGERPRINTS')}`,
    // Chromium's sandbox refuses to start for root.
    ...(root ? ['--no-sandbox'] : []),
  ],
};

const people = JSON.parse(variable('WATER_PEOPLE')) as Person[];

function holderOf(account: string): Person {
  const found = people.find(({ accounts }) => accounts.some(({ id, role }) => id === account && role === 'manager'));
  if (!found) throw new Error(`nobody holds ${account}: WATER_PEOPLE names other accounts`);
  return found;
}

/** Holds acme, and looks at globex. */
export const anna = holderOf('acme');
/** Holds globex. */
export const bruno = holderOf('globex');
/** Holds initech, whose plan has no access. */
export const chloe = holderOf('initech');

const CURL = [
  ...['--silent', '--show-error', '--max-time', '10', '--cacert', variable('WATER_CA')],
  ...['--resolve', `${host}:443:${variable('WATER_NODE_ADDRESS')}`],
];

/** The status of a request to the API with a key, by curl: a program's, not the browser's. */
export function statusWith(key: string, path = '/api/v1/stress?dept=34'): number {
  // By standard input: every user of the machine may read arguments.
  const input = `header = "Authorization: Bearer ${key}"\n`;
  const asked = [...CURL, '--config', '-', '--output', '/dev/null', '--write-out', '%{http_code}', portal + path];
  return Number(execFileSync('curl', asked, { input, encoding: 'utf8' }));
}

/** Runs a recipe of the pages in a shell, as a reader would, with its key in `WATER_KEY`. */
export function runRecipe(recipe: string, key: string): string {
  const curl = `curl() { command curl ${CURL.map((word) => `'${word}'`).join(' ')} --fail-with-body "$@"; }`;
  return execFileSync('bash', ['-euo', 'pipefail', '-c', `${curl}\n${recipe}`], {
    env: { ...process.env, WATER_KEY: key },
    encoding: 'utf8',
  });
}

/** kubectl in the product's namespace. */
export function kubectl(words: string[], input = ''): string {
  const all = ['--namespace', variable('WATER_NAMESPACE'), ...words];
  return execFileSync(variable('WATER_KUBECTL'), all, { input, encoding: 'utf8' });
}

const ACCOUNTS = ['acme', 'globex', 'initech'];

/** As a new account's: no key, and none of the changes that it may make in an hour is used up by earlier tests. */
export function removeKeys(): void {
  for (const account of ACCOUNTS) {
    kubectl(['delete', 'apikeys', '--field-selector', `spec.accountId=${account}`, '--wait']);
  }
  const { username, password, hostname, port } = new URL(variable('WATER_REDIS_ADMINISTRATOR_URL'));
  const instance = `${variable('WATER_NAMESPACE')}.water-data`;
  const allowances = ACCOUNTS.map((account) => `wd:web:{${account}}:${instance}:changes`);
  execFileSync('redis-cli', ['-e', '-h', hostname, '-p', port, '--user', username, 'DEL', ...allowances], {
    env: { ...process.env, REDISCLI_AUTH: password },
  });
}
