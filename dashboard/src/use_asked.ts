import { useEffect, useState } from "preact/hooks";
import { ask, type Asked } from "./ask";
import { type Decoder } from "./decode";

// The answer to `path`, asked again whenever it or `when` changes; the old one stays meanwhile.
// `path` null: nothing is asked. A late answer to an old question is dropped.
export function useAsked<T>(
  path: string | null,
  decode: Decoder<T, never>,
  when: unknown = null,
  pauseMs = 0,
): Asked<T> {
  const [asked, set] = useState<Asked<T>>({ tag: "waiting" });
  const [count, grow] = useState(0);
  const again = () => grow((before) => before + 1);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    const timer = window.setTimeout(async () => {
      const answer = await ask(path, decode, { signal: abort.signal });
      if (abort.signal.aborted) return;
      if (answer.tag === "known") set({ ...answer, of: path });
      else set(answer.tag === "failed" ? { ...answer, of: path, again } : answer);
    }, pauseMs);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [path, when, count]);
  return asked;
}

// Done when what shows it appears, and not again.
export function useOnce(work: () => Promise<void>) {
  useEffect(() => void work(), []);
}
