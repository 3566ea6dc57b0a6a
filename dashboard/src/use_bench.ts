import { useState } from "preact/hooks";
import { ask, type Asked } from "./ask";
import { type Report, report } from "./bench";

export type Run =
  { tag: "none" } | { tag: "running"; since: number } | Exclude<Asked<Report>, { tag: "waiting" }>;

export interface Bench {
  run: Run;
  begin: (model: string, requests: number, max_tokens: number) => Promise<void>;
}

// Lives as long as the page: a measurement goes on while another page is shown.
export function useBench(): Bench {
  const [run, set] = useState<Run>({ tag: "none" });
  async function begin(model: string, requests: number, max_tokens: number) {
    set({ tag: "running", since: Date.now() });
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, requests, max_tokens }),
    };
    set(await ask("/admin/bench", report, init));
  }
  return { run, begin };
}
