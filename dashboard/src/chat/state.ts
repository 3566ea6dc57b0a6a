// The playground's columns: pure values and the functions from one to the next.

export interface Served {
  node: string;
  replica: string;
  queued_ms: number;
  ttft_ms: number;
  tokens_per_s: number;
  resumed: boolean;
  cached_tokens: number;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
}

// An answer is in exactly one of these.
export type Answer =
  | { tag: "waiting"; asked_at: number }
  | { tag: "streaming"; asked_at: number; first_at: number; last_at: number; pieces: number }
  | { tag: "done"; finish: string; served: Served | null; usage: Usage | null }
  | { tag: "stopped"; pieces: number }
  | { tag: "failed"; message: string };

export interface Turn {
  id: number;
  prompt: string;
  reasoning: string;
  text: string;
  answer: Answer;
}

export interface Column {
  id: number;
  model: string; // "" = the first that is loaded
  session: string;
  turns: readonly Turn[];
}

export interface Chat {
  columns: readonly Column[];
  next: number; // the next id of a column or a turn
}

export const columnsMax = 4;

export type ChatAction =
  | { tag: "add"; session: string }
  | { tag: "remove"; column: number }
  | { tag: "pick"; column: number; model: string }
  | { tag: "clear"; sessions: readonly string[] }
  | { tag: "ask"; column: number; turn: number; prompt: string; at: number }
  | { tag: "pieces"; turn: number; text: string; reasoning: string; pieces: number; at: number }
  | { tag: "end"; turn: number; answer: Answer }
  | { tag: "drop"; turn: number };

export function beginChat(session: string): Chat {
  return { columns: [{ id: 1, model: "", session, turns: [] }], next: 2 };
}

export const isOpen = (turn: Turn) =>
  turn.answer.tag === "waiting" || turn.answer.tag === "streaming";

export const isBusy = (chat: Chat) => chat.columns.some((column) => column.turns.some(isOpen));

function withTurn(chat: Chat, id: number, change: (turn: Turn) => Turn | null): Chat {
  const columns = chat.columns.map((column) => {
    if (!column.turns.some((turn) => turn.id === id)) return column;
    const turns = column.turns.flatMap((turn) => (turn.id === id ? (change(turn) ?? []) : turn));
    return { ...column, turns };
  });
  return { ...chat, columns };
}

export function reduceChat(chat: Chat, action: ChatAction): Chat {
  switch (action.tag) {
    case "add": {
      if (chat.columns.length >= columnsMax) return chat;
      const model = chat.columns.at(-1)?.model ?? "";
      const column = { id: chat.next, model, session: action.session, turns: [] };
      return { columns: [...chat.columns, column], next: chat.next + 1 };
    }
    case "remove":
      if (chat.columns.length === 1) return chat;
      return { ...chat, columns: chat.columns.filter((column) => column.id !== action.column) };
    case "pick":
      return {
        ...chat,
        columns: chat.columns.map((column) =>
          column.id === action.column ? { ...column, model: action.model } : column,
        ),
      };
    case "clear":
      return {
        ...chat,
        columns: chat.columns.map((column, index) => ({
          ...column,
          session: action.sessions[index] ?? column.session,
          turns: [],
        })),
      };
    case "ask": {
      const answer: Answer = { tag: "waiting", asked_at: action.at };
      const turn = { id: action.turn, prompt: action.prompt, reasoning: "", text: "", answer };
      const columns = chat.columns.map((column) =>
        column.id === action.column ? { ...column, turns: [...column.turns, turn] } : column,
      );
      return { columns, next: Math.max(chat.next, action.turn + 1) };
    }
    case "pieces":
      return withTurn(chat, action.turn, (turn) => {
        const { answer } = turn;
        if (answer.tag !== "waiting" && answer.tag !== "streaming") return turn;
        const first_at = answer.tag === "streaming" ? answer.first_at : action.at;
        const pieces = (answer.tag === "streaming" ? answer.pieces : 0) + action.pieces;
        return {
          ...turn,
          text: turn.text + action.text,
          reasoning: turn.reasoning + action.reasoning,
          answer: {
            tag: "streaming",
            asked_at: answer.asked_at,
            first_at,
            last_at: action.at,
            pieces,
          },
        };
      });
    case "end":
      return withTurn(chat, action.turn, (turn) => ({ ...turn, answer: action.answer }));
    case "drop":
      return withTurn(chat, action.turn, () => null);
  }
}

// Models without a parser of their own put their reasoning into the text, between marks.
export function splitReasoning(turn: { text: string; reasoning: string }): {
  text: string;
  reasoning: string;
} {
  const begin = "<think>";
  const end = "</think>";
  const text = turn.text.trimStart();
  if (!text.startsWith(begin)) return turn;
  const at = text.indexOf(end);
  const inside = at < 0 ? text.slice(begin.length) : text.slice(begin.length, at);
  const rest = at < 0 ? "" : text.slice(at + end.length).trimStart();
  return { text: rest, reasoning: (turn.reasoning + inside).trim() };
}
