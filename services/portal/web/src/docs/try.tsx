//! Sends a real request with a pasted key and shows the answer. The key stays in this page's memory.
import { useState } from 'preact/hooks';
import { useLanguage } from '../language';
import type { Operation } from './openapi';
import { isOpen } from './openapi';

type Shown = { status: number; headers: [string, string][]; body: string; cut: boolean } | 'network';

/** Characters of a body that are shown, at most. */
const MOST = 20_000;

/** The fields of one operation. `apiKey` is shared by all of them. */
export function TryIt(props: { path: string; of: Operation; apiKey: string; setKey: (key: string) => void }) {
  const { w } = useLanguage();
  const [values, set] = useState<Record<string, string>>({});
  const [shown, show] = useState<Shown | undefined>();
  const [busy, setBusy] = useState(false);
  // The form has a field of its own below.
  const fields = (props.of.parameters ?? []).filter(({ in: place, name }) => place === 'query' && name !== 'format');
  const forms = Object.keys(props.of.responses['200']?.content ?? {});
  const [form, setForm] = useState(forms[0] ?? 'application/json');
  const open = isOpen(props.of);
  const id = props.of.operationId ?? props.path;
  const send = async () => {
    setBusy(true);
    const query = new URLSearchParams(fields.flatMap(({ name }) => (values[name] ? [[name, values[name]]] : [])));
    const headers: Record<string, string> = { Accept: form };
    if (!open && props.apiKey.trim() !== '') headers['Authorization'] = `Bearer ${props.apiKey.trim()}`;
    try {
      const answer = await fetch(props.path + (query.size > 0 ? `?${query.toString()}` : ''), { headers, credentials: 'omit', cache: 'no-store' });
      const text = await answer.text();
      show({ status: answer.status, headers: [...answer.headers], body: pretty(text), cut: text.length > MOST });
    } catch {
      show('network');
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p class="hint">{open ? w.docs.noKey : w.docs.tryText}</p>
      <div class="tryfields">
        {!open && (
          <div class="field">
            <label for={`${id}-key`}>{w.docs.tryKey}</label>
            <input
              id={`${id}-key`}
              type="text"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              translate={false}
              value={props.apiKey}
              onInput={(event) => props.setKey(event.currentTarget.value)}
            />
          </div>
        )}
        {fields.map(({ name }) => (
          <div class="field" key={name}>
            <label for={`${id}-${name}`}>{name}</label>
            <input
              id={`${id}-${name}`}
              type="text"
              autocomplete="off"
              spellcheck={false}
              value={values[name] ?? ''}
              onInput={(event) => set({ ...values, [name]: event.currentTarget.value })}
            />
          </div>
        ))}
        {forms.length > 1 && (
          <div class="field">
            <label for={`${id}-form`}>{w.docs.format}</label>
            <select id={`${id}-form`} value={form} onChange={(event) => setForm(event.currentTarget.value)}>
              {forms.map((type) => (
                <option key={type} value={type}>
                  {type}
                </option>
              ))}
            </select>
          </div>
        )}
      </div>
      <div>
        <button type="submit" disabled={busy}>
          {busy ? w.docs.sending : w.docs.send}
        </button>
      </div>
      <div role="status">
        {shown === 'network' && <p class="wrong">{w.problems.network}</p>}
        {shown !== undefined && shown !== 'network' && <Answer shown={shown} path={props.path} />}
      </div>
    </form>
  );
}

function Answer({ shown, path }: { shown: Exclude<Shown, 'network'>; path: string }) {
  const { w } = useLanguage();
  return (
    <div class="stack">
      <p>
        {w.docs.answer} <span class={shown.status < 400 ? 'state ok' : 'state no'}>{shown.status}</span>
      </p>
      <div class="block" tabIndex={0} role="region" aria-label={`${w.docs.headers} ${path}`}>
        <pre>{shown.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
      </div>
      <div class="block" tabIndex={0} role="region" aria-label={`${w.docs.answer} ${path}`}>
        <pre>{shown.body === '' ? w.docs.answerEmpty : shown.body.slice(0, MOST)}</pre>
      </div>
      {shown.cut && <p class="hint">{w.docs.truncated}</p>}
    </div>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
