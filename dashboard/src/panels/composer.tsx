import { useId } from "preact/hooks";
import { count } from "../format";

interface Props {
  prompt: string;
  change: (prompt: string) => void;
  columns: number;
  busy: boolean;
  ready: boolean; // there is a model
  fault: string; // a wrong setting, in words: with it nothing is sent
  send: () => void;
  stop: () => void;
}

// The words go to every column at once. Enter sends, Shift+Enter breaks the line, Escape stops.
export function Composer({ prompt, change, columns, busy, ready, fault, send, stop }: Props) {
  const id = useId();
  const may = ready && !fault && !busy && prompt.trim() !== "";
  function key(event: KeyboardEvent) {
    if (event.key === "Escape" && busy) stop();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (may) send();
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (may) send();
      }}
    >
      <label class="spoken" for={id}>
        Message
      </label>
      <textarea
        id={id}
        rows={2}
        value={prompt}
        placeholder="Ask something"
        aria-describedby={`${id}-hint`}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={key}
      />
      {fault ? (
        <span id={`${id}-hint`} class="hint wrong" role="status">
          Nothing is sent with a wrong setting. {fault}
        </span>
      ) : (
        <span id={`${id}-hint`} class="hint">
          Enter sends{columns > 1 && ` to ${count(columns, "conversation")}`}, Shift+Enter breaks
          the line, Escape stops.
        </span>
      )}
      {busy ? (
        <button type="button" class="button danger" onClick={stop}>
          Stop
        </button>
      ) : (
        <button type="submit" class="button primary" disabled={!may}>
          Send
        </button>
      )}
    </form>
  );
}
