// Asks /v1/chat/completions and reads the answer as it comes.
import { request } from "../access";
import { problemOf } from "../api";
import { flag, list, number, or, record, schema, text } from "../decode";
import { takeEvents } from "../follow";
import { type Message } from "./settings";
import { type Answer, type Served, type Usage } from "./state";

const served = schema("ServedBy", {
  node: or(text, ""),
  replica: or(text, ""),
  queued_ms: or(number, 0),
  ttft_ms: or(number, 0),
  tokens_per_s: or(number, 0),
  resumed: or(flag, false),
  cached_tokens: or(number, 0),
});
const delta = record({ content: or(text, ""), reasoning_content: or(text, "") });
const choice = record({
  delta: or(delta, { content: "", reasoning_content: "" }),
  finish_reason: or(text, ""),
});
const chunk = record({
  choices: or(list(choice), []),
  usage: or(schema("ChatUsage", { prompt_tokens: number, completion_tokens: number }), null),
  x_flotilla: or(served, null),
  error: or(record({ message: or(text, "") }), null),
});

export interface Question {
  model: string;
  messages: Message[];
  session: string;
  sampling: Record<string, number>;
}

export interface Piece {
  text: string;
  reasoning: string;
}

function bodyOf({ model, messages, session, sampling }: Question): string {
  return JSON.stringify({
    model,
    messages,
    ...sampling,
    session_id: session,
    stream: true,
    stream_options: { include_usage: true },
  });
}

async function read(answer: Response, heard: (piece: Piece) => void): Promise<Answer> {
  let by: Served | null = null;
  let usage: Usage | null = null;
  let finish = "";
  let buffer = "";
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: "" };
    if (done) break;
    const { events, rest } = takeEvents(buffer + value);
    buffer = rest;
    for (const { data } of events) {
      if (data === "[DONE]") return { tag: "done", finish, served: by, usage };
      const said = chunk(JSON.parse(data), "");
      if (said.error) return { tag: "failed", message: said.error.message };
      by = said.x_flotilla ?? by;
      usage = said.usage ?? usage;
      const [first] = said.choices;
      if (!first) continue;
      finish = first.finish_reason || finish;
      const { content, reasoning_content } = first.delta;
      if (content || reasoning_content) heard({ text: content, reasoning: reasoning_content });
    }
  }
  return { tag: "failed", message: "The answer broke off: the connection ended before it did." };
}

// How the answer ended; never throws. An abort by `signal` is the reader's own wish.
export async function ask(
  question: Question,
  signal: AbortSignal,
  heard: (piece: Piece) => void,
): Promise<Answer> {
  let pieces = 0;
  try {
    const answer = await request("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: bodyOf(question),
      signal,
    });
    if (!answer.ok) return { tag: "failed", message: await problemOf(answer) };
    return await read(answer, (piece) => {
      pieces += 1;
      heard(piece);
    });
  } catch (error) {
    if (signal.aborted) return { tag: "stopped", pieces };
    const known = error instanceof Error && !(error instanceof TypeError);
    const message = known ? error.message : "The server did not answer. Is it still running?";
    return { tag: "failed", message };
  }
}
