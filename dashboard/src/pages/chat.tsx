import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { type Answer, type Column, columnsMax, isBusy } from "../chat/state";
import { type Playground } from "../chat/use_chat";
import { rate } from "../format";
import { ChatColumn } from "../panels/chat_column";
import { ChatSettings, faultOf } from "../panels/chat_settings";
import { Composer } from "../panels/composer";
import { EndChat } from "../panels/end_chat";
import { poolsShown } from "../state";

function speedOf(answer: Answer | undefined): number {
  switch (answer?.tag) {
    case "streaming": {
      const seconds = (answer.last_at - answer.first_at) / 1000;
      return seconds > 0.2 ? (answer.pieces - 1) / seconds : 0;
    }
    case "done":
      return answer.served?.tokens_per_s ?? 0;
    default:
      return 0;
  }
}

type Ending = { tag: "none" } | { tag: "all" } | { tag: "one"; column: number };

// Talk to the fleet, in up to four conversations at once.
export function ChatPage({ fleet, playground }: { fleet: Fleet; playground: Playground }) {
  const { chat, act, settings, prompt } = playground;
  const models = [...new Set(fleet.clusters.flatMap(poolsShown).map((pool) => pool.alias))];
  const busy = isBusy(chat);
  const { columns } = chat;
  const together = columns.reduce((sum, c) => sum + speedOf(c.turns.at(-1)?.answer), 0);
  const empty = columns.every((column) => column.turns.length === 0);
  const [ending, end] = useState<Ending>({ tag: "none" });
  const leaving = columns.find((c) => ending.tag === "one" && c.id === ending.column);
  const keep = () => end({ tag: "none" });
  function close(column: Column) {
    if (column.turns.length === 0) playground.close(column);
    else end({ tag: "one", column: column.id });
  }

  function send() {
    playground.sendAll(prompt.trim(), models);
    playground.setPrompt("");
  }

  return (
    <div class="chat" data-columns={columns.length}>
      <header class="page-head">
        <h2>Chat playground</h2>
        {together > 0 && (
          <span class="muted num" data-part="together">
            {rate(together)} tokens/s together
          </span>
        )}
        <span class="spring" />
        <button
          type="button"
          class="button small"
          disabled={columns.length >= columnsMax || busy}
          onClick={() =>
            act({ tag: "add", session: `page-${Math.random().toString(36).slice(2)}` })
          }
        >
          Add a column
        </button>
        <button
          type="button"
          class="button small"
          disabled={empty}
          onClick={() => end({ tag: "all" })}
        >
          Clear
        </button>
      </header>
      <div class="chat-columns">
        {columns.map((column, index) => (
          <ChatColumn
            key={column.id}
            column={column}
            number={index + 1}
            models={models}
            alone={columns.length === 1}
            act={act}
            again={(turn, words) => playground.again(column, turn, words, models)}
            close={() => close(column)}
          />
        ))}
      </div>
      <Composer
        prompt={prompt}
        change={playground.setPrompt}
        columns={columns.length}
        busy={busy}
        ready={models.length > 0}
        fault={faultOf(settings)}
        send={send}
        stop={playground.stopAll}
      />
      <ChatSettings settings={settings} change={playground.setSettings} />
      {ending.tag === "all" && (
        <EndChat action="Clear" columns={columns} end={playground.clear} close={keep} />
      )}
      {leaving && (
        <EndChat
          action="Close"
          columns={[leaving]}
          end={() => playground.close(leaving)}
          close={keep}
        />
      )}
    </div>
  );
}
