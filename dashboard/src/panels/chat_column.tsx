import { useLayoutEffect, useRef } from "preact/hooks";
import { type ChatAction, type Column } from "../chat/state";
import { ChatTurn } from "./chat_turn";

interface Props {
  column: Column;
  number: number; // as people count
  models: readonly string[];
  alone: boolean;
  act: (action: ChatAction) => void;
  again: (turn: number, prompt: string) => void;
  close: () => void;
}

// Stays at the end while the reader is there; who has scrolled up is left alone.
function useAtEnd(words: number) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    const shown = box.current;
    if (shown && follows.current) shown.scrollTop = shown.scrollHeight;
  }, [words]);
  const onScroll = () => {
    const shown = box.current;
    if (shown) follows.current = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 40;
  };
  return { box, onScroll };
}

export function ChatColumn({ column, number, models, alone, act, again, close }: Props) {
  const { id, turns } = column;
  const words = turns.reduce((sum, turn) => sum + turn.text.length + turn.reasoning.length + 1, 0);
  const { box, onScroll } = useAtEnd(words);
  const model = models.includes(column.model) ? column.model : models[0];
  return (
    <section class="chat-column" data-column={number} aria-label={`Conversation ${number}`}>
      <header>
        <label class="spoken" for={`model-${id}`}>
          Model of conversation {number}
        </label>
        <select
          id={`model-${id}`}
          value={model ?? ""}
          disabled={models.length === 0}
          onChange={(event) => act({ tag: "pick", column: id, model: event.currentTarget.value })}
        >
          {models.length === 0 && <option value="">no model is loaded</option>}
          {models.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <span class="spring" />
        {!alone && (
          <button
            type="button"
            class="icon-button"
            aria-label={`Close conversation ${number}`}
            onClick={close}
          >
            <svg viewBox="0 0 20 20" aria-hidden="true">
              <path d="M5 5l10 10M15 5L5 15" />
            </svg>
          </button>
        )}
      </header>
      <div
        class="turns"
        ref={box}
        onScroll={onScroll}
        tabIndex={0}
        role="group"
        aria-label={`Answers in conversation ${number}`}
      >
        {turns.length === 0 && (
          <p class="muted turns-empty">
            {models.length === 0
              ? "Load a model first: the playground talks to what is loaded."
              : "Each conversation keeps its own history and cache."}
          </p>
        )}
        {turns.map((turn) => (
          <ChatTurn
            key={turn.id}
            turn={turn}
            again={() => again(turn.id, turn.prompt)}
            dismiss={() => act({ tag: "drop", turn: turn.id })}
          />
        ))}
      </div>
    </section>
  );
}
