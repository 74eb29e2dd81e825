//! The API section of an account's settings: its keys, its quota, its usage.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useAnswer } from './answer';
import { of, type Account, type Key, type KeyList, type Quota, type SignedIn } from './api';
import { KeyIcon } from './icons';
import { canMakeKeys } from './key';
import { EndDialog, RenameDialog, RevokeDialog } from './keys/confirm';
import { CreateDialog, RotateDialog } from './keys/create';
import { OtherQuota, otherPlans, QuotaCards } from './keys/quota';
import { settle } from './keys/settle';
import './keys/style.css';
import { KeyTable, type Action } from './keys/table';
import { useLanguage } from './language';
import { Heading, NoAccess, ProblemNotice, Waiting } from './page';

type Open = { what: 'create' } | { what: Action; key: Key };

const MONTH = 30 * 86_400_000;

/** The page of one account. */
export default function KeysPage({ account, session }: { account: Account; session: SignedIn }) {
  const { w, f } = useLanguage();
  const path = of(account.id, 'keys');
  const answer = useAnswer<KeyList>(path);
  const quota = useAnswer<Quota>(account.access ? of(account.id, 'quota') : undefined);
  const [fresh, setFresh] = useState<KeyList | undefined>();
  const [open, setOpen] = useState<Open | undefined>();
  const [told, tell] = useState('');
  const leaving = useRef(new AbortController());
  useEffect(() => setFresh(answer.data), [answer.data]);
  useEffect(() => {
    const watch = leaving.current;
    return () => watch.abort();
  }, []);

  const list = fresh ?? answer.data;
  const manager = account.role === 'manager';
  const mayMake = manager && account.access;
  const close = () => {
    setOpen(undefined);
    void answer.reload();
  };
  /** Follows a key until `done`, then says so. */
  const follow = async (name: string, done: (key: Key | undefined) => boolean, words: string) => {
    await answer.reload();
    const { signal } = leaving.current;
    try {
      await settle(account.id, name, done, { signal, seen: setFresh });
    } catch {
      // The session has ended or lacks the account: the page itself says so.
      return;
    }
    if (!signal.aborted) tell(words);
  };
  const limits = quota.data;
  return (
    <>
      <div class="row between top">
        <div>
          <Heading title={w.keys.title}>
            {limits
              ? w.keys.lede(account.id, account.plan, f.number(limits.minute.limit), f.number(limits.day.limit))
              : w.keys.ledeShort(account.id, account.plan)}
          </Heading>
        </div>
        {mayMake && (
          <button type="button" class="primary" disabled={!canMakeKeys()} onClick={() => setOpen({ what: 'create' })}>
            {w.keys.create}
          </button>
        )}
      </div>
      {!canMakeKeys() && mayMake && (
        <div class="notice warn">
          <p>{w.keys.cannotMake}</p>
        </div>
      )}
      {!account.access && <NoAccess plan={account.plan} />}
      {!manager && (
        <div class="notice info">
          <p>{w.keys.viewer}</p>
        </div>
      )}
      <div role="status" class={told === '' ? undefined : 'notice info'}>
        {told !== '' && <p>{told}</p>}
      </div>
      {mayMake && <Expiring keys={list?.data ?? []} rotate={(key) => setOpen({ what: 'rotate', key })} />}
      <div class="stack">
        {account.access && <QuotaCards account={account.id} quota={quota} />}
        {otherPlans(list?.data ?? [], account.plan).map((plan) => (
          <OtherQuota key={plan} account={account.id} plan={plan} />
        ))}
        {answer.problem && <ProblemNotice problem={answer.problem} at={answer.at} again={() => void answer.reload()} />}
        {!list && !answer.problem && <Waiting />}
        {list && list.data.length === 0 && <Empty mayMake={mayMake} create={() => setOpen({ what: 'create' })} />}
        {list && list.data.length > 0 && (
          <>
            <KeyTable keys={list.data} plan={account.plan} prefix={session.keyPrefix} act={manager ? (what, key) => setOpen({ what, key }) : undefined} />
            <p class="small soft">{w.keys.toTenMinutes}</p>
          </>
        )}
        {list?.keysElsewhere && <p class="small soft">{w.keys.elsewhere}</p>}
      </div>
      {open?.what === 'create' && (
        <CreateDialog
          account={account.id}
          prefix={session.keyPrefix}
          bound={account.maxKeyDays}
          seen={setFresh}
          changed={() => void answer.reload()}
          done={(key) => tell(w.keys.changed.created(key.title))}
          close={close}
        />
      )}
      {open?.what === 'rotate' && (
        <RotateDialog
          account={account.id}
          prefix={session.keyPrefix}
          bound={account.maxKeyDays}
          old={open.key}
          seen={setFresh}
          changed={() => void answer.reload()}
          done={(key) => tell(w.keys.changed.rotated(key.title))}
          close={close}
        />
      )}
      {open?.what === 'rename' && (
        <RenameDialog
          account={account.id}
          of={open.key}
          changed={() => void answer.reload()}
          done={(title) => {
            tell(w.keys.changed.renamed(title));
            close();
          }}
          close={close}
        />
      )}
      {open?.what === 'end' && (
        <EndDialog
          account={account.id}
          of={open.key}
          changed={() => void answer.reload()}
          done={(title) => {
            setOpen(undefined);
            void follow(open.key.name, (key) => !key?.previous, w.keys.changed.ended(title));
          }}
          close={close}
        />
      )}
      {open?.what === 'revoke' && (
        <RevokeDialog
          account={account.id}
          of={open.key}
          changed={() => void answer.reload()}
          done={(title) => {
            setOpen(undefined);
            tell(w.keys.changed.revoking(title));
            void follow(open.key.name, (key) => key === undefined, w.keys.changed.revoked(title));
          }}
          close={close}
        />
      )}
    </>
  );
}

/** Keys that end within 30 days, each with what to do about it. */
function Expiring({ keys, rotate }: { keys: Key[]; rotate: (key: Key) => void }) {
  const { w, f } = useLanguage();
  const soon = keys.filter(({ expiresAt, state, madeBy }) => {
    const left = expiresAt ? Date.parse(expiresAt) - Date.now() : Infinity;
    return madeBy === 'portal' && state === 'active' && left > 0 && left < MONTH;
  });
  return (
    <>
      {soon.slice(0, 3).map((key) => (
        <div class="notice warn" key={key.name}>
          <div class="row">
            <p class="break">{w.keys.expiring(key.title, f.until(key.expiresAt ?? ''))}</p>
            <button type="button" class="tiny" aria-label={w.keys.rotateLabel(key.title)} onClick={() => rotate(key)}>
              {w.keys.rotate}
            </button>
          </div>
        </div>
      ))}
    </>
  );
}

function Empty({ mayMake, create }: { mayMake: boolean; create: () => void }) {
  const { w } = useLanguage();
  return (
    <section class="card empty">
      <KeyIcon />
      <h2>{w.keys.emptyTitle}</h2>
      <p>{mayMake ? w.keys.emptyText : w.keys.emptyViewer}</p>
      {mayMake && (
        <button type="button" disabled={!canMakeKeys()} onClick={create}>
          {w.keys.create}
        </button>
      )}
    </section>
  );
}
