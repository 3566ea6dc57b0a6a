// What the stream tells beside the fleet, by the names of its events; null: nothing was told yet.
import { type Event, events } from "./operations";
import { nodeList, type Telemetry } from "./nodes";
import { type Request, requests } from "./requests";

export interface Told {
  nodes: ReadonlyMap<string, Telemetry> | null; // by id
  requests: readonly Request[] | null; // the newest first
  audit: readonly Event[] | null;
}

// An event of a name that this page does not know says nothing to it.
export function decodeTold(name: string, data: string): Partial<Told> {
  const value: unknown = JSON.parse(data);
  switch (name) {
    case "nodes":
      return { nodes: new Map(nodeList(value, "").nodes.map((node) => [node.node, node])) };
    case "requests":
      return { requests: requests(value, "").requests };
    case "audit":
      return { audit: events(value, "").events };
    default:
      return {};
  }
}
