import { type Fleet } from "../api";
import { count } from "../format";
import { nodesOf } from "../nodes";
import { NodeCard } from "../panels/node_card";

// Every machine once, whatever clusters it is in.
export function NodesPage({ fleet, generation }: { fleet: Fleet; generation: number }) {
  const nodes = nodesOf(fleet);
  const up = nodes.filter(({ node }) => node.state === "up").length;
  return (
    <div class="page">
      <header class="page-head">
        <h2>Nodes</h2>
        <span class="muted">
          {count(nodes.length, "node")}, {up} up
        </span>
      </header>
      <div class="node-cards">
        {nodes.map((shown) => (
          <NodeCard key={shown.node.id} shown={shown} generation={generation} />
        ))}
      </div>
      {nodes.length === 0 && <p class="panel muted">Nodes come with their cluster: add one.</p>}
    </div>
  );
}
