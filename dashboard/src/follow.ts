// Follows one SSE stream for as long as the page is open: decodes each event, notices silence, and
// reconnects by itself; after a 401 not before it is told to, when somebody has logged in. fetch instead of EventSource, because EventSource hides why it was refused.
import { request as ask } from "./access";
import { problemOf } from "./api";
import { type Signal } from "./state";

const staleAfterMs = 6_000; // the server sends at least every 2 s
const cutAfterMs = 15_000;
const backoffMinMs = 500;
const backoffMaxMs = 10_000;

export interface ServerEvent {
  name: string; // empty: the stream's own
  data: string;
}

// Each complete event, and what is left for the next chunk.
export function takeEvents(buffer: string): { events: ServerEvent[]; rest: string } {
  const blocks = buffer.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  const events: ServerEvent[] = [];
  for (const block of blocks) {
    const lines = block.split("\n");
    const of = (field: string) =>
      lines
        .filter((line) => line.startsWith(`${field}:`))
        .map((line) => line.slice(field.length + 1).replace(/^ /, ""));
    const data = of("data");
    if (data.length > 0) events.push({ name: of("event").at(-1) ?? "", data: data.join("\n") });
  }
  return { events, rest };
}

// Of each name the newest: every event is the whole state of what it tells.
export function newestOf(events: readonly ServerEvent[]): Map<string, string> {
  return new Map(events.map(({ name, data }) => [name, data]));
}

export function backoffMs(attempt: number, chance: number): number {
  const base = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(attempt, 10));
  return base * (1 + chance * 0.2);
}

export interface Followed {
  retryNow(): void;
  close(): void;
}

export function follow<T>(
  url: string,
  decode: (data: string) => T,
  signal: (signal: Signal<T>) => void,
  beside: (name: string, data: string) => void, // events that have a name
): Followed {
  let attempt = 0;
  let closed = false;
  let timer = 0;
  let watch = 0;
  let request = new AbortController();

  function again(message: string, status = 0) {
    window.clearInterval(watch);
    if (closed) return;
    if (status === 401) return signal({ tag: "failed", message, retry_at: Infinity });
    const wait = backoffMs(attempt, Math.random());
    attempt += 1;
    signal({ tag: "failed", message, retry_at: Date.now() + wait });
    timer = window.setTimeout(() => void connect(), wait);
  }

  async function connect() {
    const mine = new AbortController();
    request = mine;
    let heardAt = Date.now();
    signal({ tag: "connecting" });
    window.clearInterval(watch);
    watch = window.setInterval(() => {
      const silence = Date.now() - heardAt;
      if (silence > cutAfterMs) mine.abort();
      else if (silence > staleAfterMs) signal({ tag: "silent" });
    }, 1_000);
    try {
      const answer = await ask(url, {
        headers: { accept: "text/event-stream" },
        cache: "no-store",
        signal: mine.signal,
      });
      if (!answer.ok || !answer.body) return again(await problemOf(answer), answer.status);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return again("The server ended the connection.");
        const { events, rest } = takeEvents(buffer + value);
        buffer = rest;
        if (events.length === 0) continue;
        const { "": state, ...named } = Object.fromEntries(newestOf(events));
        heardAt = Date.now();
        attempt = 0;
        if (state !== undefined) signal({ tag: "event", value: decode(state), at: heardAt });
        for (const [name, data] of Object.entries(named)) if (data) beside(name, data);
      }
    } catch (error) {
      const known =
        error instanceof Error && !(error instanceof TypeError) && error.name !== "AbortError";
      again(known ? error.message : "The server does not answer.");
    } finally {
      mine.abort();
    }
  }

  void connect();
  return {
    retryNow() {
      window.clearTimeout(timer);
      attempt = 0;
      void connect();
    },
    close() {
      closed = true;
      window.clearTimeout(timer);
      request.abort();
    },
  };
}
