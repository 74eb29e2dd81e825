//! The dialogs that make a key: a new one, and one in the place of another.
import { useState } from 'preact/hooks';
import { json, of, type Key, type KeyList } from '../api';
import { Dialog } from '../dialog';
import { generate, type NewKey } from '../key';
import { useLanguage } from '../language';
import { expiresAt, ExpiryField, expiryRefusal, firstExpiry, type Bound } from './expiry';
import { Making } from './making';
import { isTitle, TitleField } from './title';

type Common = {
  account: string;
  prefix: string;
  /** The most days that a key may live. */
  bound: Bound;
  seen: (list: KeyList) => void;
  /** Told when the list may no longer be what the page shows. */
  changed: () => void;
  done: (key: Key) => void;
  close: () => void;
};

/** Makes a new key: a name and an expiry, then its text. */
export function CreateDialog({ account, prefix, bound, seen, changed, done, close }: Common) {
  const { w } = useLanguage();
  const [title, setTitle] = useState('');
  const [expiry, setExpiry] = useState(() => firstExpiry(bound, Date.now()));
  const [tried, setTried] = useState(false);
  const [made, setMade] = useState<{ key: NewKey; expiresAt: string | null } | undefined>();
  const wrong = tried ? expiryRefusal(expiry, bound, Date.now()) : undefined;
  const submit = async () => {
    setTried(true);
    const now = Date.now();
    if (!isTitle(title) || expiryRefusal(expiry, bound, now)) return;
    setMade({ key: await generate(prefix), expiresAt: expiresAt(expiry, bound, now) });
  };
  const send = async (): Promise<Key> => {
    const { sha256, keyId } = made!.key;
    const body = { title: title.trim(), expiresAt: made!.expiresAt, sha256, keyId };
    const key = await json<Key>(of(account, 'keys'), { method: 'POST', body });
    done(key);
    return key;
  };
  if (made) {
    return (
      <Dialog label={w.keys.yourKey(title.trim())} close={close}>
        <Making account={account} title={title.trim()} made={made.key} send={send} seen={seen} changed={changed} close={close} />
      </Dialog>
    );
  }
  return (
    <Dialog label={w.keys.createTitle} close={close} key="form">
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div>
          <h2>{w.keys.createTitle}</h2>
          <p class="soft">{w.keys.createText(account)}</p>
        </div>
        <TitleField value={title} set={setTitle} wrong={tried && !isTitle(title) ? w.keys.titleWrong : undefined} />
        <ExpiryField value={expiry} set={setExpiry} bound={bound} wrong={wrong && w.keys[wrong]} />
        <div class="foot">
          <button type="button" onClick={close}>
            {w.cancel}
          </button>
          <button type="submit" class="primary">
            {w.keys.make}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Seconds for which the text of before goes on. */
const OVERLAPS = { h0: 0, h1: 3600, h24: 86_400, d7: 604_800 } as const;

/** Makes a key in the place of another: how long the old one goes on, then the new text. */
export function RotateDialog({ account, prefix, bound, old, seen, changed, done, close }: Common & { old: Key }) {
  const { w, f } = useLanguage();
  const [overlap, setOverlap] = useState<keyof typeof OVERLAPS>('h24');
  const [expiry, setExpiry] = useState(() => firstExpiry(bound, Date.now()));
  const [ends, setEnds] = useState(false);
  const [tried, setTried] = useState(false);
  const [made, setMade] = useState<{ key: NewKey; expiresAt: string | null } | undefined>();
  const wrong = tried ? expiryRefusal(expiry, bound, Date.now()) : undefined;
  const running = old.previous ?? undefined;
  const submit = async () => {
    setTried(true);
    const now = Date.now();
    if ((running && !ends) || expiryRefusal(expiry, bound, now)) return;
    setMade({ key: await generate(prefix), expiresAt: expiresAt(expiry, bound, now) });
  };
  const send = async (): Promise<Key> => {
    const { sha256, keyId } = made!.key;
    const body = {
      replaces: old.keyId,
      sha256,
      keyId,
      overlapSeconds: OVERLAPS[overlap],
      expiresAt: made!.expiresAt,
      endPrevious: running !== undefined,
    };
    const key = await json<Key>(of(account, 'keys', old.name, 'rotation'), { method: 'POST', body });
    done(key);
    return key;
  };
  if (made) {
    return (
      <Dialog label={w.keys.yourKey(old.title)} close={close}>
        <Making account={account} title={old.title} made={made.key} send={send} seen={seen} changed={changed} close={close} />
      </Dialog>
    );
  }
  return (
    <Dialog label={w.keys.rotateTitle(old.title)} close={close} key="form">
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div>
          <h2>{w.keys.rotateTitle(old.title)}</h2>
          <p class="soft">{w.keys.rotateText}</p>
        </div>
        <div class="field">
          <label for="overlap">{w.keys.overlapLabel}</label>
          <select id="overlap" autofocus value={overlap} onChange={(event) => setOverlap(event.currentTarget.value as keyof typeof OVERLAPS)}>
            {(Object.keys(OVERLAPS) as (keyof typeof OVERLAPS)[]).map((choice) => (
              <option key={choice} value={choice}>
                {w.keys.overlap[choice]}
              </option>
            ))}
          </select>
        </div>
        <ExpiryField value={expiry} set={setExpiry} bound={bound} wrong={wrong && w.keys[wrong]} />
        {running && (
          <div class="notice warn">
            <p>{w.keys.overlapRunning(f.until(running.retiresAt))}</p>
            <p>
              <label>
                <input type="checkbox" checked={ends} onChange={(event) => setEnds(event.currentTarget.checked)} /> {w.keys.endPreviousToo}
              </label>
            </p>
            {tried && !ends && (
              <p class="wrong" role="alert">
                {w.keys.endPreviousNeeded}
              </p>
            )}
          </div>
        )}
        <div class="foot">
          <button type="button" onClick={close}>
            {w.cancel}
          </button>
          <button type="submit" class="primary">
            {w.keys.make}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
