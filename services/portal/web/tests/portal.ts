//! The portal in the cluster: its version and its pods.
import { expect } from '@playwright/test';
import { kubectl } from './cluster';

const PODS = 'app.kubernetes.io/component=portal';
/** Eight pods of gate, services and portal, one after the other, on a busy machine. */
const ROLLOUT = 300_000;

type Condition = { type: string; status: string };
type Api = {
  metadata: { name: string; generation: number };
  spec: { image: { tag: string } };
  status?: { version?: string; observedGeneration?: number; conditions?: Condition[] };
};
type Pod = { metadata: { name: string; uid: string; deletionTimestamp?: string }; spec: { containers: { image: string }[] } };

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

/** The names of the portal's pods. */
export async function podNames(): Promise<string[]> {
  return (await pods()).map(({ metadata }) => metadata.name);
}

/** Declares a version and waits until all of the product runs it; answers how many seconds that took. */
export async function rollTo(version: string): Promise<number> {
  const begun = performance.now();
  const { metadata } = await waterDataApi();
  const change = { spec: { image: { tag: version } } };
  await kubectl(['patch', 'waterdataapi', metadata.name, '--type=merge', '-p', JSON.stringify(change)]);
  const state = async () => {
    const { metadata, status } = await waterDataApi();
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    const current = status?.observedGeneration === metadata.generation;
    const images = (await pods()).map(({ spec }) => spec.containers[0]?.image.split(':').at(-1));
    return { ready, current, version: status?.version, images: [...new Set(images)] };
  };
  const rolled = { ready: 'True', current: true, version, images: [version] };
  await expect.poll(state, { message: `the rollout of ${version}`, timeout: ROLLOUT }).toEqual(rolled);
  return (performance.now() - begun) / 1000;
}
