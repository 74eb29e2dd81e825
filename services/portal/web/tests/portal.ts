//! The portal in the cluster: its version, its pods and their processes.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from '@playwright/test';
import { kubectl } from './cluster';

const PODS = 'app.kubernetes.io/component=portal';
/** Eight pods of gate, services and portal, one after the other, on a busy machine. */
const ROLLOUT = 300_000;

type Condition = { type: string; status: string; reason: string; message: string };
type Portal = { replicas?: number; oidc: { clientSecretRef: { name: string; key: string } } };
type Api = {
  metadata: { name: string; generation: number };
  spec: { image: { tag: string }; portal: Portal };
  status?: { version?: string; observedGeneration?: number; conditions?: Condition[] };
};
type Pod = {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  spec: { containers: { image: string }[] };
  status?: { conditions?: Pick<Condition, 'type' | 'status'>[] };
};

async function waterDataApi(): Promise<Api> {
  const { items } = JSON.parse(await kubectl(['get', 'waterdataapis', '-o', 'json'])) as { items: Api[] };
  if (!items[0]) throw new Error('the cluster has no WaterDataApi');
  return items[0];
}

/** The pods that nobody has asked to go. */
async function pods(): Promise<Pod[]> {
  const { items } = JSON.parse(await kubectl(['get', 'pods', '-l', PODS, '-o', 'json'])) as { items: Pod[] };
  return items.filter(({ metadata }) => !metadata.deletionTimestamp);
}

/** The version that the WaterDataApi declares. */
export async function declaredVersion(): Promise<string> {
  return (await waterDataApi()).spec.image.tag;
}

/** What the WaterDataApi declares of the portal. */
export async function declaredPortal(): Promise<Portal> {
  return (await waterDataApi()).spec.portal;
}

/** The condition of this type in the WaterDataApi's status. */
export async function condition(type: string): Promise<Condition | undefined> {
  return (await waterDataApi()).status?.conditions?.find((one) => one.type === type);
}

/** The names of the portal's pods. */
export async function podNames(): Promise<string[]> {
  return (await pods()).map(({ metadata }) => metadata.name);
}

/** Declares a version and waits until all of the product runs it; answers how many seconds that took. */
export async function rollTo(version: string): Promise<number> {
  const begun = performance.now();
  await declare({ image: { tag: version } });
  const state = async () => {
    const images = (await pods()).map(({ spec }) => spec.containers[0]?.image.split(':').at(-1));
    return { ...(await rolled()), version: (await waterDataApi()).status?.version, images: [...new Set(images)] };
  };
  const wanted = { ...ROLLED, version, images: [version] };
  await expect.poll(state, { message: `the rollout of ${version}, whose images \`cargo dev images\` makes`, timeout: ROLLOUT }).toEqual(wanted);
  return (performance.now() - begun) / 1000;
}

/** Declares this of the portal and waits until other pods have taken the place of those that did not know it. */
export async function declarePortal(change: object): Promise<void> {
  const before = await podNames();
  await declare({ portal: change });
  const state = async () => ({ ...(await rolled()), left: (await podNames()).filter((name) => before.includes(name)) });
  await expect.poll(state, { message: 'the rollout of the portal', timeout: ROLLOUT }).toEqual({ ...ROLLED, left: [] });
}

async function declare(change: object): Promise<void> {
  const { metadata } = await waterDataApi();
  await kubectl(['patch', 'waterdataapi', metadata.name, '--type=merge', '-p', JSON.stringify({ spec: change })]);
}

const ROLLED = { ready: 'True', current: true };

/** Whether the operator has made real what is declared now. */
async function rolled(): Promise<{ ready: string | undefined; current: boolean }> {
  const { metadata, status } = await waterDataApi();
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return { ready, current: status?.observedGeneration === metadata.generation };
}

/** The machine's ids of the portal's processes, each in a control group that has its pod's uid in its name. */
export async function processes(): Promise<number[]> {
  // With the driver systemd the uid's dashes would be underscores.
  const uids = (await pods()).flatMap(({ metadata: { uid } }) => [uid, uid.replaceAll('-', '_')]);
  const found = readdirSync('/proc').filter((id) => {
    if (!/^\d+$/.test(id)) return false;
    const group = processFile(id, 'cgroup');
    // Neither `pause` nor what is only about to become a portal.
    return uids.some((uid) => group.includes(uid)) && processFile(id, 'comm').trim() === 'water-portal';
  });
  return found.map(Number);
}

/** This file of a process in /proc; empty if the process has ended. */
function processFile(id: string | number, file: string): string {
  try {
    return readFileSync(`/proc/${id}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** Ends processes as a lack of memory would, and waits until they are no more. */
export async function kill(ids: number[]): Promise<void> {
  for (const id of ids) process.kill(id, 'SIGKILL');
  const left = () => ids.filter((id) => !['', 'Z'].includes(/\) (\w)/.exec(processFile(id, 'stat'))?.[1] ?? ''));
  await expect.poll(left, { message: 'processes that were killed', intervals: [1] }).toEqual([]);
}

/** Waits until two others are Ready in the place of pods whose processes were killed. */
export async function replacePods(): Promise<void> {
  const old = (await pods()).map(({ metadata }) => metadata.uid);
  // A process that ends again and again is begun again later each time; another pod at once.
  await kubectl(['delete', 'pods', '-l', PODS, '--grace-period=1', '--wait=true']);
  // The Deployment's own status may still be that of before the deletion.
  const others = async () => (await pods()).filter((pod) => isReady(pod) && !old.includes(pod.metadata.uid)).length;
  await expect.poll(others, { message: 'two other pods of the portal', timeout: 120_000 }).toBe(2);
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
}
