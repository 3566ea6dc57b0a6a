import { useId, useState } from "preact/hooks";
import { type Fleet } from "../api";
import { curl } from "../examples";
import { Command } from "../parts/command";
import { Copy } from "../parts/copy";
import { poolsShown } from "../state";

// Where clients connect, and a first request that works as it stands.
export function Endpoint({ fleet }: { fleet: Fleet }) {
  const pick = useId();
  const aliases = [...new Set(fleet.clusters.flatMap(poolsShown).map((pool) => pool.alias))];
  const [chosen, choose] = useState("");
  const alias = aliases.includes(chosen) ? chosen : aliases[0];
  return (
    <section class="endpoint" aria-labelledby="endpoint">
      <header>
        <h2 id="endpoint">Endpoint</h2>
        <span class="address">
          <code>{fleet.endpoint}</code>
          <Copy words={fleet.endpoint} what="the endpoint" />
        </span>
        {aliases.length > 1 && (
          <span class="pick">
            <label for={pick}>Model</label>
            <select id={pick} value={alias} onChange={(event) => choose(event.currentTarget.value)}>
              {aliases.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </span>
        )}
      </header>
      {alias ? (
        <Command words={curl(fleet.endpoint, alias, fleet)} />
      ) : (
        <p class="muted">A ready-made request appears here as soon as a model is loaded.</p>
      )}
    </section>
  );
}
