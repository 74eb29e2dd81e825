//! What is left of an account's quota, and what was used of it in 30 days.
import type { Answer } from '../answer';
import { useAnswer, useRepeated } from '../answer';
import { of, type Key, type Quota, type UsageDay } from '../api';
import { Gauge } from '../gauge';
import { useLanguage } from '../language';
import { ProblemNotice } from '../page';

type Usage = { data: UsageDay[] };

/** The three cards above the list of keys. */
export function QuotaCards({ account, quota }: { account: string; quota: Answer<Quota> }) {
  const { w } = useLanguage();
  const usage = useAnswer<Usage>(`${of(account, 'usage')}?days=30`);
  useRepeated(quota, 5);
  useRepeated(usage, 15);
  const { data } = quota;
  return (
    <>
      {quota.problem && <ProblemNotice problem={quota.problem} at={quota.at} again={() => void quota.reload()} />}
      {usage.problem && usage.problem.code !== quota.problem?.code && (
        <ProblemNotice problem={usage.problem} at={usage.at} again={() => void usage.reload()} />
      )}
      <div class="grid three">
        <Windows quota={data} />
        <section class="card">
          <h2 class="soft small">{w.quota.usage}</h2>
          <Bars days={usage.data?.data ?? []} />
        </section>
      </div>
    </>
  );
}

/** Plans other than the account's that keys in force have, sorted. */
export function otherPlans(keys: Key[], plan: string): string[] {
  const others = keys.filter((key) => key.state === 'active' && key.plan !== plan).map((key) => key.plan);
  return [...new Set(others)].sort();
}

/** The cards of a plan that is not the account's, but some of its keys'. */
export function OtherQuota({ account, plan }: { account: string; plan: string }) {
  const { w } = useLanguage();
  const quota = useAnswer<Quota>(`${of(account, 'quota')}?plan=${encodeURIComponent(plan)}`);
  useRepeated(quota, 5);
  return (
    <section aria-label={w.quota.ofPlan(plan)} data-plan={plan}>
      {quota.problem && <ProblemNotice problem={quota.problem} at={quota.at} again={() => void quota.reload()} />}
      <div class="grid three">
        <Windows quota={quota.data} plan={plan} />
        <p class="small soft">{w.quota.together}</p>
      </div>
    </section>
  );
}

/** The cards of the minute and of the day. */
function Windows({ quota, plan }: { quota: Quota | undefined; plan?: string }) {
  const { w, f } = useLanguage();
  const midnight = new Date();
  midnight.setUTCHours(24, 0, 0, 0);
  const local = midnight.toLocaleTimeString(document.documentElement.lang, { hour: '2-digit', minute: '2-digit' });
  const named = (title: string) => (plan === undefined ? title : `${title} · ${w.quota.ofPlan(plan)}`);
  return (
    <>
      <section class="card">
        <h2 class="soft small">{named(w.quota.minute)}</h2>
        <Left window={quota?.minute} />
        <p class="small soft">
          {quota && (quota.minute.remaining >= quota.minute.limit ? w.quota.full : w.quota.opens(f.number(quota.minute.opensInSeconds)))}
        </p>
      </section>
      <section class="card">
        <h2 class="soft small">{named(w.quota.day)}</h2>
        <Left window={quota?.day} />
        <p class="small soft">{w.quota.resets(local)}</p>
      </section>
    </>
  );
}

function Left({ window }: { window: Quota['minute'] | undefined }) {
  const { w, f } = useLanguage();
  if (!window) return <p class="big">–</p>;
  return (
    <>
      <p class="big">
        {f.number(window.remaining)} <small>{w.quota.of(f.number(window.limit))}</small>
      </p>
      <Gauge share={window.remaining / window.limit} />
    </>
  );
}

function Bars({ days }: { days: UsageDay[] }) {
  const { w, f } = useLanguage();
  const most = Math.max(1, ...days.map((day) => day.accepted + day.limited));
  const sum = (of: (day: UsageDay) => number) => f.number(days.reduce((total, day) => total + of(day), 0));
  const height = (count: number) => (count === 0 ? 0 : Math.max(2, (72 * count) / most));
  const bar = 300 / Math.max(30, days.length);
  if (days.every((day) => day.accepted + day.limited === 0)) return <p class="soft">{w.quota.none}</p>;
  return (
    <>
      <svg class="bars" viewBox="0 0 300 74" preserveAspectRatio="none" aria-hidden="true">
        {days.map((day, index) => {
          const [accepted, limited] = [height(day.accepted), height(day.limited)];
          const x = index * bar;
          return (
            <g key={day.day}>
              <rect class={index === days.length - 1 ? 'last' : undefined} x={x} y={74 - accepted} width={bar - 3} height={accepted} rx={1.5} />
              <rect class="limited" x={x} y={74 - accepted - limited} width={bar - 3} height={limited} />
            </g>
          );
        })}
      </svg>
      <p class="small soft">
        {w.quota.totals(
          sum((day) => day.accepted),
          sum((day) => day.limited),
        )}
        <br />
        {w.quota.counted}
      </p>
      <details class="more small">
        <summary>{w.quota.asTable}</summary>
        <div class="scroll tablebox" tabIndex={0} role="region" aria-label={w.quota.usage}>
          <table>
            <caption class="hidden">{w.quota.usage}</caption>
            <thead>
              <tr>
                <th scope="col">{w.quota.dayColumn}</th>
                <th scope="col" class="n">
                  {w.quota.accepted}
                </th>
                <th scope="col" class="n">
                  {w.quota.limited}
                </th>
              </tr>
            </thead>
            <tbody>
              {[...days].reverse().map((day) => (
                <tr key={day.day}>
                  <th scope="row">{f.day(`${day.day}T00:00:00Z`)}</th>
                  <td class="n">{f.number(day.accepted)}</td>
                  <td class="n">{f.number(day.limited)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
