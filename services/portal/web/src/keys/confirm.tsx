//! The dialogs that change a key without making one: rename, end the overlap, revoke.
import { useState } from 'preact/hooks';
import { ask, json, of, Problem, type Key } from '../api';
import { Dialog } from '../dialog';
import { useLanguage } from '../language';
import { problemText } from '../page';
import { isTitle, TitleField } from './title';

type Props = {
  account: string;
  of: Key;
  done: (title: string) => void;
  /** Told when the list may no longer be what the page shows. */
  changed: () => void;
  close: () => void;
};

/** A question with one action; a refusal stays in the dialog. */
function Confirm(props: {
  label: string;
  action: string;
  danger: boolean;
  act: () => Promise<void>;
  changed: () => void;
  close: () => void;
  children: preact.ComponentChildren;
}) {
  const { w } = useLanguage();
  const [problem, setProblem] = useState<Problem | undefined>();
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      await props.act();
    } catch (error) {
      const met = error instanceof Problem ? error : new Problem('internal', 0, undefined, undefined, 0);
      setProblem(met);
      if (met.status === 409 || met.status === 404) props.changed();
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog label={props.label} close={props.close}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h2>{props.label}</h2>
        {props.children}
        {problem && (
          <div class="notice bad" role="alert">
            <p>{problemText(w, problem)}</p>
          </div>
        )}
        <div class="foot">
          <button type="button" onClick={props.close}>
            {w.cancel}
          </button>
          <button type="submit" class={props.danger ? 'danger' : 'primary'} disabled={busy}>
            {props.action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Gives a key another name. */
export function RenameDialog({ account, of: key, done, changed, close }: Props) {
  const { w } = useLanguage();
  const [title, setTitle] = useState(key.title);
  const [tried, setTried] = useState(false);
  const act = async () => {
    setTried(true);
    if (!isTitle(title)) return;
    await json(of(account, 'keys', key.name), { method: 'PATCH', body: { title: title.trim() } });
    done(title.trim());
  };
  return (
    <Confirm label={w.keys.renameTitle(key.title)} action={w.keys.renameSave} danger={false} act={act} changed={changed} close={close}>
      <TitleField value={title} set={setTitle} wrong={tried && !isTitle(title) ? w.keys.titleWrong : undefined} />
    </Confirm>
  );
}

/** Ends the life of the text of before the last replacement. */
export function EndDialog({ account, of: key, done, changed, close }: Props) {
  const { w, f } = useLanguage();
  const used = key.previous?.lastUsedAt;
  const act = async () => {
    await ask(of(account, 'keys', key.name, 'previous'), { method: 'DELETE' });
    done(key.title);
  };
  return (
    <Confirm label={w.keys.endTitle(key.title)} action={w.keys.endNow} danger act={act} changed={changed} close={close}>
      <p>{w.keys.endText}</p>
      <p class="soft">{w.keys.endUse(used ? f.ago(used) : w.keys.never)}</p>
    </Confirm>
  );
}

/** Ends a key for good. */
export function RevokeDialog({ account, of: key, done, changed, close }: Props) {
  const { w, f } = useLanguage();
  const act = async () => {
    try {
      await ask(of(account, 'keys', key.name), { method: 'DELETE' });
    } catch (error) {
      // Gone already, as when an answer to an earlier try was lost: what was wanted.
      if (!(error instanceof Problem) || error.status !== 404) throw error;
    }
    done(key.title);
  };
  return (
    <Confirm label={w.keys.revokeTitle(key.title)} action={w.keys.revoke} danger act={act} changed={changed} close={close}>
      <p>{w.keys.revokeText}</p>
      <p class="soft">
        {w.keys.revokeUse(key.lastUsedAt ? f.ago(key.lastUsedAt) : w.keys.never)} {w.keys.toTenMinutes}
      </p>
      {key.madeBy === 'cluster' && <p class="note">{w.keys.revokeCluster}</p>}
    </Confirm>
  );
}
