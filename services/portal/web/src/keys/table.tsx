//! The list of an account's keys. On narrow screens each row is a card.
import { useState } from 'preact/hooks';
import type { Key, KeyState } from '../api';
import { useLanguage } from '../language';
import { reasonText } from '../words/reasons';

export type Action = 'rename' | 'rotate' | 'revoke' | 'end';

const PAGE = 100;
const LOOKS: Record<KeyState, string> = {
  publishing: 'state wait',
  active: 'state ok',
  suspended: 'state',
  not_yet_valid: 'state wait',
  expired: 'state no',
  plan_without_access: 'state no',
  revoking: 'state wait',
  stalled: 'state no',
};

/** All keys; `act` is missing for those who may only look. */
export function KeyTable(props: { keys: Key[]; plan: string; prefix: string; act: ((action: Action, key: Key) => void) | undefined }) {
  const { w, f } = useLanguage();
  const [text, find] = useState('');
  const [most, showMore] = useState(PAGE);
  const wanted = text.trim().toLocaleLowerCase();
  const found = props.keys.filter((key) => `${key.title} ${key.keyId} ${key.name}`.toLocaleLowerCase().includes(wanted));
  return (
    <section class="card tablecard">
      {props.keys.length > 10 && (
        <div class="row between">
          <label class="field">
            <span class="hidden">{w.keys.find}</span>
            <input type="text" autocomplete="off" spellcheck={false} placeholder={w.keys.find} value={text} onInput={(event) => find(event.currentTarget.value)} />
          </label>
          <span class="soft small" role="status">
            {w.keys.found(f.number(found.length), f.number(props.keys.length))}
          </span>
        </div>
      )}
      <div class="scroll">
        <table class="keytable cards">
          <caption class="hidden">{w.keys.list}</caption>
          <thead>
            <tr>
              <th scope="col">{w.keys.name}</th>
              <th scope="col">{w.keys.key}</th>
              <th scope="col">{w.keys.state}</th>
              <th scope="col">{w.keys.created}</th>
              <th scope="col">{w.keys.lastUse}</th>
              <th scope="col">{w.keys.expires}</th>
              {props.act && (
                <th scope="col">
                  <span class="hidden">{w.keys.actions}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map((key) => (
              <Row key={key.name} of={key} plan={props.plan} prefix={props.prefix} act={props.act} />
            ))}
          </tbody>
        </table>
      </div>
      {found.length > most && (
        <div class="row">
          <button type="button" onClick={() => showMore(most + PAGE)}>
            {w.keys.more}
          </button>
        </div>
      )}
    </section>
  );
}

function Row({ of: key, plan, prefix, act }: { of: Key; plan: string; prefix: string; act: ((action: Action, key: Key) => void) | undefined }) {
  const { w, f, lang } = useLanguage();
  const why = reasonText(lang, key);
  const used = (iso: string | null | undefined) => (iso ? f.ago(iso) : w.keys.never);
  const going = key.state === 'revoking';
  return (
    <tr data-key={key.name} data-state={key.state}>
      <th scope="row" class="title">
        <span class="keytitle">{key.title || key.name}</span>
        <div class="small soft">
          {key.madeBy === 'portal' ? w.keys.madeHere : w.keys.madeByCluster}
          {key.plan !== plan && ` · ${w.keys.otherPlan(key.plan)}`}
          {act && !going && key.madeBy === 'portal' && (
            <button type="button" class="tiny plain" aria-label={w.keys.renameLabel(key.title)} onClick={() => act('rename', key)}>
              {w.keys.rename}
            </button>
          )}
        </div>
        {key.previous && (
          <div class="small">
            {w.keys.previousWorks(f.until(key.previous.retiresAt), used(key.previous.lastUsedAt))}{' '}
            {act && !going && (
              <button type="button" class="tiny plain" aria-label={w.keys.endPreviousLabel(key.title)} onClick={() => act('end', key)}>
                {w.keys.endPrevious}
              </button>
            )}
          </div>
        )}
      </th>
      <td data-label={w.keys.key}>
        <code class="nowrap" translate={false}>{`${prefix}_${key.keyId}…`}</code>
      </td>
      <td data-label={w.keys.state}>
        <span>
          <span class={LOOKS[key.state]}>{w.keys.states[key.state]}</span>
          {(why !== undefined || (key.waitingGates ?? 0) > 0) && (
            <span class="small soft">
              <br />
              {why} {(key.waitingGates ?? 0) > 0 && w.keys.waitingGates(key.waitingGates ?? 0)}
            </span>
          )}
        </span>
      </td>
      <td data-label={w.keys.created} class="nowrap">
        {key.createdAt ? f.date(key.createdAt) : '–'}
      </td>
      <td data-label={w.keys.lastUse}>{used(key.lastUsedAt)}</td>
      <td data-label={w.keys.expires} class="nowrap">
        {key.expiresAt ? f.date(key.expiresAt) : w.keys.noExpiry}
      </td>
      {act && (
        <td>
          {!going && (
            <div class="actions">
              {key.madeBy === 'portal' && (
                <button type="button" class="tiny" aria-label={w.keys.rotateLabel(key.title)} onClick={() => act('rotate', key)}>
                  {w.keys.rotate}
                </button>
              )}
              <button type="button" class="tiny" aria-label={w.keys.revokeLabel(key.title || key.name)} onClick={() => act('revoke', key)}>
                {w.keys.revoke}
              </button>
            </div>
          )}
        </td>
      )}
    </tr>
  );
}
