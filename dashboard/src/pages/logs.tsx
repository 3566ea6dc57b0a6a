import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { type Event } from "../operations";
import { Events } from "../panels/events";
import { LogView } from "../panels/log_view";
import { Pick } from "../parts/pick";

// The replicas' own words, and who did what.
interface Props {
  fleet: Fleet;
  audit: readonly Event[] | null;
  generation: number;
}

export function LogsPage({ fleet, audit, generation }: Props) {
  const pools = fleet.clusters.flatMap((cluster) => cluster.pools);
  const replicas = pools.flatMap((pool) =>
    pool.replicas.map((replica) => ({
      name: `${pool.alias} on ${replica.node}`,
      node: replica.node,
      pool: pool.alias,
    })),
  );
  const asked = sessionStorage.getItem("flotilla.log") ?? "";
  const [chosen, choose] = useState(asked);
  const shown = replicas.find((replica) => replica.name === chosen) ?? replicas[0];
  return (
    <div class="page">
      <header class="page-head">
        <h2>Logs and events</h2>
      </header>
      <section class="panel log-panel" aria-label="Log of a replica">
        <Pick
          label="Replica"
          options={replicas.map((replica) => replica.name)}
          chosen={shown?.name ?? ""}
          choose={choose}
        />
        {shown ? (
          <LogView key={shown.name} node={shown.node} pool={shown.pool} generation={generation} />
        ) : (
          <p class="muted">A replica writes a log as soon as a model is loaded.</p>
        )}
      </section>
      <Events audit={audit} />
    </div>
  );
}
