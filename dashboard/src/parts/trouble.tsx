import { Copy } from "./copy";

interface Props {
  words: string;
  again?: (() => void) | undefined;
}

// What went wrong where something should be shown: it stays, can be taken along and tried again.
export function Trouble({ words, again }: Props) {
  return (
    <div class="refusal" role="alert">
      <p>{words}</p>
      <span class="refusal-actions">
        <Copy words={words} what="the error" />
        {again && (
          <button type="button" class="button small" onClick={again}>
            Try again
          </button>
        )}
      </span>
    </div>
  );
}
