// What the nodes have and what would fit on them, asked before a load.
import { type Decoded, flag, list, number, or, record, text } from "./decode";

export const inventory = record({
  models: list(
    record({
      model: text,
      size_bytes: or(number, 0),
      parts: or(number, 1),
      family: or(text, ""),
      quantization: or(text, ""),
      context_trained: or(number, 0),
      nodes: or(list(text), []),
      missing: or(list(text), []),
      differing: or(list(text), []),
      error: or(text, ""),
    }),
  ),
  nodes: or(list(record({ node: text, models_dir: or(text, ""), error: or(text, "") })), []),
});

export const preflight = record({
  fits: flag,
  width: or(number, 1),
  limiting_node: or(text, ""),
  nodes: list(
    record({
      node: text,
      model_present: or(flag, true),
      context: or(number, 0),
      weights_bytes: or(number, 0),
      kv_bytes: or(number, 0),
      buffer_bytes: or(number, 0),
      need_bytes: or(number, 0),
      free_bytes: or(number, 0),
      replicas_here: or(number, 1),
      fits: flag,
      verdict: or(text, ""),
    }),
  ),
});

export type Inventory = Decoded<typeof inventory>;
export type FoundModel = Inventory["models"][number];
export type Preflight = Decoded<typeof preflight>;

export const modelsPath = (cluster: string) =>
  `/admin/clusters/${encodeURIComponent(cluster)}/models`;

export function preflightPath(cluster: string, model: string, batch: boolean, context: string) {
  const query = new URLSearchParams({ model, batch: String(batch) });
  if (context) query.set("context", context);
  return `/admin/clusters/${encodeURIComponent(cluster)}/preflight?${query}`;
}
