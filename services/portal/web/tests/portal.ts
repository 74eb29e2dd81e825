//! The portal in the cluster: its version, its pods and their processes.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from '@playwright/test';
import { kubectl, setting } from './cluster';

/** The parts that are rolled out, one pod after the other. */
const PARTS = 'app.kubernetes.io/component in (gate, departements, history, portal)';
const PODS = 'app.kubernetes.io/component=portal';
/** Portals that the chart installs. */
const PORTALS = 2;
/** The most for one step of a rollout: an old pod's end, or a new one's start until it is Ready, on a busy machine. */
const STEP = 120_000;

type Condition = { type: string; status: string; reason: string; message: string };
type Portal = { replicas?: number; oidc: { clientSecretRef: { name: string; key: string } } };
type Component = { name: string; desired: number; ready: number; updated: number; image: string };
type Spec = { image: { tag: string }; portal: Portal };
type Status = { version?: string; observedGeneration?: number; components?: Component[]; conditions?: Condition[] };
type Api = { metadata: { name: string; generation: number }; spec: Spec; status?: Status };
type Pod = {
  metadata: { name: string; uid: string; labels: Record<string, string>; deletionTimestamp?: string };
  spec: { containers: { image: string }[] };
  status?: { conditions?: Pick<Condition, 'type' | 'status'>[] };
};
/** The release at one moment: what is declared, and how far it is rolled out. */
type Look = {
  tag: string;
  replicas: number;
  /** Whether the operator has made real what is declared now. */
  isReal: boolean;
  version: string | undefined;
  message: string | undefined;
  components: Component[];
  /** The pods that nobody has asked to go. */
  pods: { name: string; part: string | undefined; version: string | undefined; isReady: boolean }[];
};

async function waterDataApi(): Promise<Api> {
  const { items } = JSON.parse(await kubectl(['get', 'waterdataapis', '-o', 'json'])) as { items: Api[] };
  if (!items[0]) throw new Error('the cluster has no WaterDataApi');
  return items[0];
}

/** The pods with such labels that nobody has asked to go. */
async function pods(labels = PODS): Promise<Pod[]> {
  const { items } = JSON.parse(await kubectl(['get', 'pods', '-l', labels, '-o', 'json'])) as { items: Pod[] };
  return items.filter(({ metadata }) => !metadata.deletionTimestamp);
}

/** The condition of this type in the WaterDataApi's status. */
export async function condition(type: string): Promise<Condition | undefined> {
  return (await waterDataApi()).status?.conditions?.find((one) => one.type === type);
}

/** The names of the portal's pods. */
export async function podNames(): Promise<string[]> {
  return (await pods()).map(({ metadata }) => metadata.name);
}

async function look(): Promise<Look> {
  const [{ metadata, spec, status }, all] = [await waterDataApi(), await pods(PARTS)];
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    tag: spec.image.tag,
    replicas: spec.portal.replicas ?? PORTALS,
    isReal: ready?.status === 'True' && status?.observedGeneration === metadata.generation,
    version: status?.version,
    message: ready?.message,
    components: status?.components ?? [],
    pods: all.map((pod) => ({
      name: pod.metadata.name,
      part: pod.metadata.labels['app.kubernetes.io/component'],
      version: pod.spec.containers[0]?.image.split(':').at(-1),
      isReady: isReady(pod),
    })),
  };
}

const portals = ({ pods }: Look) => pods.filter(({ part }) => part === 'portal');

/**
 * Waits for what takes one step after another, each with a deadline of its own: a step is a look that was not there
 * before, so that pods that come up and fail in turn are none. Says what it saw last, or why nothing could be seen.
 */
async function waitFor(what: string, isDone: (seen: Look) => boolean): Promise<void> {
  const known = new Set<string>();
  let isOver = false;
  while (!isOver) {
    await expect(async () => {
      const seen = await look();
      const text = JSON.stringify(seen);
      isOver = isDone(seen);
      if (!isOver && known.has(text)) throw new Error(`${what}: no step in ${STEP / 1000} s since ${text}`);
      known.add(text);
    }).toPass({ timeout: STEP });
  }
}

async function declare(change: object): Promise<void> {
  const { metadata } = await waterDataApi();
  await kubectl(['patch', 'waterdataapi', metadata.name, '--type=merge', '-p', JSON.stringify({ spec: change })]);
}

/** The release that all tests share, for one that changes it or needs all of it. */
export class Release {
  private constructor(private readonly declared: Spec) {}

  /** Waits until it is as installed: a version that has images, two portals, and nothing that is still to come. */
  static async asInstalled(): Promise<Release> {
    const versions = setting('WATER_VERSIONS').split(' ');
    await waitFor('a release as installed', (seen) => {
      const ready = portals(seen).filter(({ isReady }) => isReady).length;
      const isRolledOut = seen.isReal && seen.version === seen.tag && versions.includes(seen.tag);
      return isRolledOut && [seen.replicas, portals(seen).length, ready].every((count) => count === PORTALS);
    });
    const { image, portal } = (await waterDataApi()).spec;
    return new Release({ image, portal });
  }

  /** The version that is declared. */
  get version(): string {
    return this.declared.image.tag;
  }

  /** What was declared of the portal when the test began. */
  get portal(): Portal {
    return this.declared.portal;
  }

  /** Declares a version, waits until all of the product runs it, and keeps it; answers how many seconds that took. */
  async rollTo(version: string): Promise<number> {
    const begun = performance.now();
    await declare({ image: { tag: version } });
    await waitFor(`the rollout of ${version}, whose images \`cargo dev images\` makes`, (seen) => {
      const all = portals(seen);
      const isRun = all.length > 0 && all.every((portal) => portal.version === version);
      return seen.isReal && seen.version === version && isRun;
    });
    this.declared.image.tag = version;
    return (performance.now() - begun) / 1000;
  }

  /** Declares this of the portal and waits until other pods have taken the place of those that did not know it. */
  async declarePortal(change: object): Promise<void> {
    const before = await podNames();
    await declare({ portal: change });
    const isNew = (seen: Look) => portals(seen).every(({ name }) => !before.includes(name));
    await waitFor('the rollout of the portal', (seen) => seen.isReal && isNew(seen));
  }

  /** Declares what a test that failed may have left changed as it was before, and does not wait for it. */
  async putBack(): Promise<void> {
    const { image, portal } = this.declared;
    const { replicas = null, oidc } = portal;
    await declare({ image: { tag: image.tag }, portal: { replicas, oidc: { clientSecretRef: oidc.clientSecretRef } } });
  }
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
  const old = await podNames();
  // A process that ends again and again is begun again later each time; another pod at once.
  await kubectl(['delete', 'pods', '-l', PODS, '--grace-period=1', '--wait=true']);
  // The Deployment's own status may still be that of before the deletion.
  const isOther = ({ name, isReady }: Look['pods'][number]) => isReady && !old.includes(name);
  await waitFor('two other pods of the portal', (seen) => portals(seen).filter(isOther).length === PORTALS);
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
}
