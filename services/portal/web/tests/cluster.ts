//! The cluster that the tests run against: its addresses, people and tools, from `cargo dev env`.
import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Person = { email: string; name: string; password: string; accounts: { id: string; plan: string; role: string }[] };
export type Answer = { status: number; body: string };

/** A setting, or a sentence that says which one is missing. */
export function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the browser tests by \`cargo dev test\`, or after eval "$(cargo dev env)"`);
  return value;
}

/** The person who holds, or may only look at, an account. */
export function person(account: string, role = 'manager'): Person {
  const people = JSON.parse(setting('WATER_PEOPLE')) as Person[];
  const found = people.find((one) => one.accounts.some((of) => of.id === account && of.role === role));
  if (!found) throw new Error(`WATER_PEOPLE has no ${role} of ${account}`);
  return found;
}

/** What a program prints; fails when the program does. */
export function run(program: string, args: string[], options: { input?: string; cwd?: string; env?: Record<string, string> } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { cwd: options.cwd, env: { ...process.env, ...options.env }, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      // The error's own text holds the arguments, and they may hold a key.
      if (error) reject(new Error(`${program} ended with ${String(error.code)}: ${stderr}`));
      else resolve(stdout);
    });
    // A program that reads nothing may have closed its input already.
    child.stdin?.on('error', () => undefined).end(options.input ?? '');
  });
}

/** A folder of its own for one test, inside the folder that is searched for keys afterwards. */
export function folder(name: string): string {
  return mkdtempSync(join(setting('WATER_BROWSER_FOLDER'), `${name}-`));
}

/** The settings by which curl finds and trusts the ingress, as a home folder for it. */
export function curlHome(): string {
  const home = folder('curl');
  const host = new URL(setting('WATER_PORTAL_URL')).host;
  writeFileSync(join(home, '.curlrc'), `cacert = ${setting('WATER_CA')}\nresolve = ${host}:443:${setting('WATER_NODE_ADDRESS')}\nmax-time = 60\n`);
  return home;
}

let home: string | undefined;

/** Asks the API with curl through the ingress. The key is given on standard input: arguments can be seen by all. */
export async function curl(key: string, path: string): Promise<Answer> {
  home ??= curlHome();
  const args = ['-sS', '-H', '@-', '-w', '\n%{http_code}', setting('WATER_PORTAL_URL') + path];
  const text = await run('curl', args, { input: `Authorization: Bearer ${key}\n`, env: { CURL_HOME: home } });
  const end = text.lastIndexOf('\n');
  return { status: Number(text.slice(end + 1)), body: text.slice(0, end) };
}

/** What Redis answers to its administrator, without quotes. */
export function redis(...args: string[]): Promise<string> {
  return run('redis-cli', ['--no-auth-warning', '--raw', '-u', setting('WATER_REDIS_ADMINISTRATOR_URL'), ...args]);
}

/** Gives an account its changes of the hour and reads of the minute back: the tests together need more. */
export async function renewAllowances(account: string): Promise<void> {
  const names = (await redis('KEYS', `wd:web:{${account}}:*`)).split('\n').filter((name) => /:(changes|reads)$/.test(name));
  if (names.length > 0) await redis('DEL', ...names);
}

/** `kubectl` in the product's namespace. */
export function kubectl(args: string[], input?: string): Promise<string> {
  return run(setting('WATER_KUBECTL'), ['-n', setting('WATER_NAMESPACE'), '--request-timeout=60s', ...args], { input });
}
