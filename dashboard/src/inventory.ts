// What the nodes have and what would fit on them, asked before a load.
import { type Decoded, flag, list, number, or, schema, text } from "./decode";

const names = or(list(text), [] as string[]);

const found = schema("FoundModel", {
  model: text,
  size_bytes: or(number, 0),
  parts: or(number, 1),
  folder: or(flag, false), // of weights, for engines that are not ours
  family: or(text, ""),
  quantization: or(text, ""),
  context_trained: or(number, 0),
  nodes: names,
  missing: names,
  differing: names,
  error: or(text, ""),
});

const lookedAt = schema("NodeModels", {
  node: text,
  models_dir: or(text, ""),
  error: or(text, ""),
});

export const inventory = schema("ClusterModels", {
  cluster: or(text, ""),
  models: list(found),
  nodes: or(list(lookedAt), []),
});

export const inventories = schema("AllModels", { clusters: list(inventory) });

const checked = schema("PreflightNode", {
  node: text,
  model_present: or(flag, true),
  context: or(number, 0),
  weights_bytes: or(number, 0),
  kv_bytes: or(number, 0),
  buffer_bytes: or(number, 0),
  need_bytes: or(number, 0),
  free_bytes: or(number, 0),
  on_devices: or(flag, false),
  advice: or(text, ""), // a folder with a module of its own, say
  estimated: or(flag, false),
  replicas_here: or(number, 1),
  fits: flag,
  hash: or(text, ""), // empty: not known yet
  differs: or(text, ""),
  verdict: or(text, ""),
  fix: or(text, ""),
});

export const preflight = schema("Preflight", {
  fits: flag,
  width: or(number, 1),
  limiting_node: or(text, ""),
  nodes: list(checked),
});

export type Inventory = Decoded<typeof inventory>;
export type FoundModel = Inventory["models"][number];
export type Preflight = Decoded<typeof preflight>;

// The nodes that do not have it as the first of them does.
export const wanting = (model: FoundModel) => [...model.missing, ...model.differing];

export const modelsPath = (cluster: string) =>
  `/admin/clusters/${encodeURIComponent(cluster)}/models`;

export function preflightPath(cluster: string, model: string, batch: boolean, context: string) {
  const query = new URLSearchParams({ model, batch: String(batch) });
  if (context) query.set("context", context);
  return `/admin/clusters/${encodeURIComponent(cluster)}/preflight?${query}`;
}
