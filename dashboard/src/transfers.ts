// Copies of models to nodes that lack them, as the stream has them.
import { type Decoded, list, number, or, schema, text } from "./decode";

const node = schema("TransferNode", {
  node: text,
  state: text,
  done_bytes: or(number, 0),
  total_bytes: or(number, 0),
  resumed_bytes: or(number, 0),
  bytes_per_s: or(number, 0),
  eta_s: or(number, null),
  error: or(text, ""),
});

export const transfer = schema("Transfer", {
  id: text,
  cluster: text,
  model: text,
  source: or(text, ""),
  state: text,
  nodes: list(node),
});

export type Transfer = Decoded<typeof transfer>;
export type TransferNode = Decoded<typeof node>;
