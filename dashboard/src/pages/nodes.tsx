import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { count } from "../format";
import { doctor, nodesOf, type Telemetry } from "../nodes";
import { Doctor } from "../panels/doctor";
import { InstallNode } from "../panels/install_node";
import { NodeCard } from "../panels/node_card";
import { TrustNode } from "../panels/trust_node";
import { useAsked } from "../use_asked";

type Open = { tag: "none" } | { tag: "trust" | "install"; node: string };

// Every machine once, whatever clusters it is in.
interface Props {
  fleet: Fleet;
  telemetry: ReadonlyMap<string, Telemetry> | null;
}

export function NodesPage({ fleet, telemetry }: Props) {
  const [open, show] = useState<Open>({ tag: "none" });
  const [visits, visit] = useState(0);
  const found = useAsked(visits > 0 ? "/admin/doctor" : null, doctor, visits);
  const nodes = nodesOf(fleet);
  const up = nodes.filter(({ node }) => node.state === "up").length;
  const close = () => show({ tag: "none" });
  const opened = open.tag === "none" ? undefined : nodes.find(({ node }) => node.id === open.node);
  return (
    <div class="page">
      <header class="page-head">
        <h2>Nodes</h2>
        <span class="muted">
          {count(nodes.length, "node")}, {up} up
        </span>
        <span class="spring" />
        <button type="button" class="button small" onClick={() => visit(visits + 1)}>
          Check everything
        </button>
      </header>
      {visits > 0 && <Doctor asked={found} />}
      <div class="node-cards">
        {nodes.map((shown) => (
          <NodeCard
            key={shown.node.id}
            shown={shown}
            telemetry={telemetry?.get(shown.node.id) ?? null}
            trust={() => show({ tag: "trust", node: shown.node.id })}
            install={() => show({ tag: "install", node: shown.node.id })}
          />
        ))}
      </div>
      {nodes.length === 0 && <p class="panel muted">Nodes come with their cluster: add one.</p>}
      {open.tag === "trust" && opened && <TrustNode node={open.node} close={close} />}
      {open.tag === "install" && opened && <InstallNode shown={opened} close={close} />}
    </div>
  );
}
