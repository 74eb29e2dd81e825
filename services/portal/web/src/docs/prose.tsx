//! The two marks that the API's descriptions use: `code` and **strong**. Everything else is text.

/** Text with its marks; `lang` because the API describes itself in English. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part, index) => {
        if (part.startsWith('`')) return <code key={index}>{part.slice(1, -1)}</code>;
        if (part.startsWith('**')) return <b key={index}>{part.slice(2, -2)}</b>;
        return part;
      })}
    </>
  );
}
