// What is known of each node: from the stream always, its telemetry where the server has it.
import { type Fleet, type Node, type Pool, type Replica } from "./api";
import { type Decoded, list, number, or, record, text } from "./decode";

export const telemetry = record({
  memory_total: or(number, null),
  memory_available: or(number, null),
  cpu_load: or(number, null),
  cores: or(number, null),
  temperature_c: or(number, null),
  link_ms: or(number, null),
  replicas: or(list(record({ replica: text, rss_bytes: or(number, 0) })), []),
});
export type Telemetry = Decoded<typeof telemetry>;

export const telemetryPath = (node: string) => `/admin/nodes/${encodeURIComponent(node)}/telemetry`;

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
