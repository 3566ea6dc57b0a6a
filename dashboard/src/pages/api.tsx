import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { administration, examples } from "../examples";
import { Command } from "../parts/command";
import { Copy } from "../parts/copy";
import { Pick } from "../parts/pick";
import { poolsShown } from "../state";

// Ready to be taken along: requests to this very server, with a model that it has.
export function ApiPage({ fleet }: { fleet: Fleet }) {
  const models = [...new Set(fleet.clusters.flatMap(poolsShown).map((pool) => pool.alias))];
  const [chosen, choose] = useState("");
  const alias = models.includes(chosen) ? chosen : (models[0] ?? "MODEL");
  const server = fleet.endpoint.replace(/\/v1$/, "");
  const cluster = fleet.clusters[0]?.id ?? "local";
  return (
    <div class="page">
      <header class="page-head">
        <h2>API</h2>
        <span class="address">
          <code>{fleet.endpoint}</code>
          <Copy words={fleet.endpoint} what="the endpoint" />
        </span>
      </header>
      <section class="panel examples" aria-labelledby="clients">
        <h2 id="clients">Ask a model</h2>
        <p class="muted">
          The endpoint speaks OpenAI's API: any client of it works with this address.{" "}
          {fleet.keys ? (
            <>
              It wants a key: put one into <code>FLOTILLA_API_KEY</code> first (
              <a href="#/keys">Keys</a>).
            </>
          ) : (
            "Until keys are made, any key will do."
          )}
        </p>
        {models.length > 1 && (
          <Pick label="Model" options={models} chosen={alias} choose={choose} />
        )}
        {examples(fleet.endpoint, alias, fleet).map(({ name, code }) => (
          <div key={name} class="example" data-example={name}>
            <h3>{name}</h3>
            <Command words={code} />
          </div>
        ))}
      </section>
      <section class="panel examples" aria-labelledby="operators">
        <h2 id="operators">Operate the fleet</h2>
        <p class="muted">
          What this page does is a route below <code>/admin</code>, and a command:{" "}
          <code>flotilla status</code>. All of it is described in{" "}
          <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).
          {fleet.login && (
            <>
              {" "}
              It wants the admin token: put it into <code>FLOTILLA_ADMIN_TOKEN</code> first.
            </>
          )}
        </p>
        {administration(server, cluster, fleet).map(({ name, code }) => (
          <div key={name} class="example" data-example={name}>
            <h3>{name}</h3>
            <Command words={code} />
          </div>
        ))}
      </section>
    </div>
  );
}
