//! The gates in the cluster: whether what they answered of an account's limits was exact.
import { kubectl } from './cluster';

/** Tries of what a late Redis or the end of a day may make inexact. */
const TRIES = 3;
const SHARED = 'water_gate_limits_shared_total{';

type Gate = { metadata: { uid: string; deletionTimestamp?: string }; status?: { podIP?: string } };
/** State of the limits: numbers are exact between two that are equal. */
type LimitsState = { day: string; shared: string };

/** Proves what needs exact limits; does so again if it fails and a gate decided by its share, or a day of UTC ended. */
export async function exactly(prove: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const before = await limitsState();
    const failed = await prove().then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (!failed) return;
    const after = await limitsState().catch((cause: unknown) => {
      // What the test says comes first.
      if (failed.error instanceof Error) failed.error.cause ??= cause;
      throw failed.error;
    });
    const why = whyInexact(before, after);
    if (why === undefined) throw failed.error;
    const text = `${why}: ${String(failed.error)}`;
    const all = `${TRIES} tries proved nothing; in the last one ${text}`;
    if (tries === TRIES) throw new Error(all, { cause: failed.error });
    console.log(`once more, since ${text}`);
  }
}

/** The sentence that says why numbers between the two prove nothing, if they do not. */
function whyInexact(before: LimitsState, after: LimitsState): string | undefined {
  if (before.day !== after.day) return `the day ${before.day} of UTC ended, and its quota and usage with it`;
  if (before.shared !== after.shared) {
    return `gates decided by their shares, as without Redis: ${before.shared} before, ${after.shared} after`;
  }
  return undefined;
}

/** The day in UTC, and for each gate how many requests it has decided by its share since it began. */
async function limitsState(): Promise<LimitsState> {
  const found = await kubectl(['get', 'pods', '-l', 'app.kubernetes.io/component=gate', '-o', 'json']);
  const { items } = JSON.parse(found) as { items: Gate[] };
  const serving = items.filter(({ metadata }) => !metadata.deletionTimestamp);
  if (serving.length === 0) throw new Error('the cluster has no gate');
  const shared = await Promise.all(serving.map(async (gate) => [gate.metadata.uid, await decidedByShare(gate)]));
  return { day: new Date().toISOString().slice(0, 10), shared: JSON.stringify(Object.fromEntries(shared)) };
}

/** Requests that a gate decided by its share so far, since Redis did not answer it in time. */
async function decidedByShare({ metadata, status }: Gate): Promise<number> {
  // The machine reaches pods by their addresses.
  const answer = await fetch(`http://${status?.podIP}:9090/metrics`, { signal: AbortSignal.timeout(60_000) });
  const series = (await answer.text()).split('\n').filter((line) => line.startsWith(SHARED));
  if (series.length === 0) throw new Error(`the gate ${metadata.uid} answers ${answer.status} and counts no ${SHARED}`);
  return series.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
