import { useEffect, useState } from "preact/hooks";
import { request } from "./access";
import { problemOf } from "./api";
import { append, type Log, noLog } from "./operations";

export type Tail =
  | { tag: "connecting" }
  | { tag: "live"; log: Log }
  | { tag: "ended"; log: Log }
  | { tag: "missing" }
  | { tag: "error"; message: string };

const paintEveryMs = 200;

// A replica's log as it grows. `generation` changes when the server is back: then it begins anew.
export function useLog(node: string, pool: string, generation: string): Tail {
  const [tail, set] = useState<Tail>({ tag: "connecting" });
  useEffect(() => {
    if (!node) return;
    const abort = new AbortController();
    let log = noLog;
    let timer = 0;
    const paint = () => {
      timer = 0;
      set({ tag: "live", log });
    };
    async function read() {
      const query = new URLSearchParams({ node, replica: pool, follow: "1" });
      const answer = await request(`/admin/logs?${query}`, { signal: abort.signal });
      if (answer.status === 404) {
        const message = await problemOf(answer);
        const missing = message.startsWith("there is nothing at");
        return set(missing ? { tag: "missing" } : { tag: "error", message });
      }
      if (!answer.ok || !answer.body) {
        return set({ tag: "error", message: await problemOf(answer) });
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        log = append(log, value);
        if (!timer) timer = window.setTimeout(paint, paintEveryMs);
      }
      window.clearTimeout(timer);
      set({ tag: "ended", log });
    }
    set({ tag: "connecting" });
    read().catch(() => {
      if (!abort.signal.aborted) set({ tag: "error", message: "The server does not answer." });
    });
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [node, pool, generation]);
  return tail;
}
