// What is known of each node, from the stream.
import { type Fleet, type Node, type Pool, type Replica } from "./api";
import { type Decoded, flag, list, number, or, schema, text } from "./decode";

const gpu = schema("Gpu", {
  index: number,
  name: text,
  memory_total_bytes: number,
  memory_used_bytes: number,
  busy_percent: or(number, null),
  temperature_c: or(number, null),
  power_w: or(number, null),
});
export type Gpu = Decoded<typeof gpu>;

const telemetry = schema("NodeTelemetry", {
  node: text,
  version: or(text, ""),
  platform: or(text, ""),
  outdated: or(flag, false),
  memory_total_bytes: or(number, 0), // 0: it has not told yet
  memory_available_bytes: or(number, 0),
  cpu_load: or(number, 0),
  cores: or(number, 0),
  round_trip_ms: or(number, 0),
  replicas: or(list(schema("ReplicaMemory", { alias: text, node: text, rss_bytes: number })), []),
  gpus: or(list(gpu), []),
});
export type Telemetry = Decoded<typeof telemetry>;
export const nodeList = schema("NodeList", { nodes: list(telemetry) });

const finding = schema("Finding", {
  cluster: text,
  node: text,
  check: text,
  level: text,
  detail: text,
  fix: or(text, ""),
});
export const doctor = schema("Doctor", { ok: flag, findings: list(finding) });
export type Finding = Decoded<typeof finding>;

export const tested = schema("NodeTest", {
  version: or(text, ""),
  outdated: or(flag, false),
  model: or(text, ""),
  engine: or(text, ""),
  took_ms: or(number, 0),
});
export type Tested = Decoded<typeof tested>;

export const trust = schema("TrustAnswer", {
  host: text,
  fingerprints: list(text),
  file: text,
  known: flag,
  changed: flag,
});
export type Trust = Decoded<typeof trust>;

export const bootstrap = schema("BootstrapAnswer", {
  version: text,
  platform: text,
  path: text,
  up: flag,
});

export interface NodeShown {
  node: Node;
  clusters: string[];
  work: { pool: Pool; replica: Replica }[];
}

// A node's id is global: one machine in two clusters is one node.
export function nodesOf(fleet: Fleet): NodeShown[] {
  const by = new Map<string, NodeShown>();
  for (const cluster of fleet.clusters) {
    for (const node of cluster.nodes) {
      const shown = by.get(node.id) ?? { node, clusters: [], work: [] };
      shown.clusters.push(cluster.label || cluster.id);
      for (const pool of cluster.pools) {
        for (const replica of pool.replicas) {
          if (replica.node === node.id) shown.work.push({ pool, replica });
        }
      }
      by.set(node.id, shown);
    }
  }
  return [...by.values()];
}

export const nodePath = (node: string, order: "trust" | "bootstrap") =>
  `/admin/nodes/${encodeURIComponent(node)}/${order}`;
