import { type Dispatch, useReducer, useRef, useState } from "preact/hooks";
import { messagesOf, noSettings, samplingOf, type Settings } from "./settings";
import { beginChat, type Chat, type ChatAction, type Column, reduceChat } from "./state";
import { ask, type Piece } from "./stream";

export interface Playground {
  chat: Chat;
  act: Dispatch<ChatAction>;
  settings: Settings;
  setSettings: (settings: Settings) => void;
  prompt: string;
  setPrompt: (prompt: string) => void;
  sendAll: (prompt: string, models: readonly string[]) => void;
  again: (column: Column, turn: number, prompt: string, models: readonly string[]) => void;
  stopAll: () => void;
  close: (column: Column) => void;
  clear: () => void;
}

const paintEveryMs = 60; // text arrives faster than anybody reads it
const newSession = () => `page-${Math.random().toString(36).slice(2, 12)}`;

// The playground's state lives as long as the page: answers go on while another page is shown.
export function useChat(): Playground {
  const [chat, act] = useReducer(reduceChat, "", () => beginChat(newSession()));
  const [settings, setSettings] = useState(noSettings);
  const [prompt, setPrompt] = useState("");
  const open = useRef(new Map<number, AbortController>());
  const nextTurn = useRef(1);

  async function send(column: Column, model: string, words: string) {
    const turn = nextTurn.current++;
    const abort = new AbortController();
    open.current.set(turn, abort);
    act({ tag: "ask", column: column.id, turn, prompt: words, at: Date.now() });
    let held: Piece & { pieces: number } = { text: "", reasoning: "", pieces: 0 };
    let timer = 0;
    const paint = () => {
      window.clearTimeout(timer);
      timer = 0;
      if (held.pieces > 0) act({ tag: "pieces", turn, ...held, at: Date.now() });
      held = { text: "", reasoning: "", pieces: 0 };
    };
    const question = {
      model,
      messages: messagesOf(settings, column.turns, words),
      session: column.session,
      sampling: samplingOf(settings),
    };
    const answer = await ask(question, abort.signal, (piece) => {
      held.text += piece.text;
      held.reasoning += piece.reasoning;
      held.pieces += 1;
      if (!timer) timer = window.setTimeout(paint, paintEveryMs);
    });
    paint();
    open.current.delete(turn);
    act({ tag: "end", turn, answer });
  }

  const modelOf = (column: Column, models: readonly string[]) =>
    models.includes(column.model) ? column.model : (models[0] ?? column.model);

  return {
    chat,
    act,
    settings,
    setSettings,
    prompt,
    setPrompt,
    sendAll(words, models) {
      for (const column of chat.columns) void send(column, modelOf(column, models), words);
    },
    again(column, turn, words, models) {
      act({ tag: "drop", turn });
      const turns = column.turns.filter((entry) => entry.id !== turn);
      void send({ ...column, turns }, modelOf(column, models), words);
    },
    stopAll() {
      for (const abort of open.current.values()) abort.abort();
    },
    // Nobody would read what is still being said there.
    close(column) {
      for (const turn of column.turns) open.current.get(turn.id)?.abort();
      act({ tag: "remove", column: column.id });
    },
    clear() {
      for (const abort of open.current.values()) abort.abort();
      act({ tag: "clear", sessions: chat.columns.map(newSession) });
    },
  };
}
