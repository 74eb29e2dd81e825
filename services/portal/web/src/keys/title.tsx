//! The name that a holder gives a key.
import { useLanguage } from '../language';

/** Whether the portal will take this name: 1 to 100 characters, none of which controls the lines or the direction of a text. */
export function isTitle(title: string): boolean {
  const length = [...title.trim()].length;
  return length >= 1 && length <= 100 && !/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(title);
}

/** The field of a form. */
export function TitleField({ value, set, wrong }: { value: string; set: (value: string) => void; wrong: string | undefined }) {
  const { w } = useLanguage();
  return (
    <div class="field">
      <label for="title">{w.keys.titleLabel}</label>
      <input
        id="title"
        type="text"
        value={value}
        autocomplete="off"
        autofocus
        aria-invalid={wrong !== undefined}
        aria-describedby={wrong === undefined ? 'title-hint' : 'title-hint title-wrong'}
        onInput={(event) => set(event.currentTarget.value)}
      />
      <p class="hint" id="title-hint">
        {w.keys.titleHint}
      </p>
      {wrong !== undefined && (
        <p class="wrong" id="title-wrong" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}
