//! Copying text, and saving it as a file.
import { useState } from 'preact/hooks';

/** A button that copies, and says that it has. */
export function CopyButton(props: { text: string; copy: string; copied: string; failed: string; class?: string }) {
  const [state, set] = useState<'idle' | 'copied' | 'failed'>('idle');
  const act = () =>
    navigator.clipboard.writeText(props.text).then(
      () => set('copied'),
      () => set('failed'),
    );
  return (
    <>
      <button type="button" class={props.class} onClick={() => void act()}>
        {state === 'copied' ? props.copied : props.copy}
      </button>
      <span role="status" class={state === 'failed' ? 'wrong' : 'hidden'}>
        {state === 'idle' ? '' : state === 'copied' ? props.copied : props.failed}
      </span>
    </>
  );
}

/** Hands a file to the browser's downloads. */
export function saveFile(parts: BlobPart[], type: string, name: string): void {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
