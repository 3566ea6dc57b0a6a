import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { BenchReport } from "../panels/bench_report";
import { Ago } from "../parts/clock";
import { Field } from "../parts/field";
import { Pick } from "../parts/pick";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { poolsShown } from "../state";
import { type Bench } from "../use_bench";

function wrong(value: string, most: number): string {
  const good = /^[0-9]+$/.test(value) && Number(value) >= 1 && Number(value) <= most;
  return good ? "" : `A whole number from 1 to ${most}.`;
}

function Outcome({ run }: { run: Bench["run"] }) {
  switch (run.tag) {
    case "none":
      return (
        <p class="panel muted">
          All requests are sent at the same moment, by the server itself. Users' requests go on and
          share the replicas with them.
        </p>
      );
    case "running":
      return (
        <p class="panel" role="status">
          Measuring, begun <Ago at={run.since} />…
        </p>
      );
    case "missing":
      return <Unavailable what="measurements" route="POST /admin/bench" />;
    case "failed":
      return <Trouble words={run.message} />;
    case "known":
      return <BenchReport report={run.value} />;
  }
}

// The 20-request burst: how much the fleet does at once, and in which waves.
export function BenchPage({ fleet, bench }: { fleet: Fleet; bench: Bench }) {
  const models = [...new Set(fleet.clusters.flatMap(poolsShown).map((pool) => pool.alias))];
  const [chosen, choose] = useState("");
  const [requests, setRequests] = useState("20");
  const [tokens, setTokens] = useState("100");
  const model = models.includes(chosen) ? chosen : models[0];
  const good = !wrong(requests, 256) && !wrong(tokens, 4096);
  const running = bench.run.tag === "running";
  return (
    <div class="page">
      <header class="page-head">
        <h2>Bench</h2>
      </header>
      <form
        class="panel bench-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (model && good && !running) void bench.begin(model, Number(requests), Number(tokens));
        }}
      >
        <Pick label="Model" options={models} chosen={model ?? ""} choose={choose} />
        <Field
          label="Requests"
          hint="Sent at the same moment"
          value={requests}
          change={setRequests}
          wrong={wrong(requests, 256)}
          numeric
        />
        <Field
          label="Tokens"
          hint="Of each answer, exactly"
          value={tokens}
          change={setTokens}
          wrong={wrong(tokens, 4096)}
          numeric
        />
        <button type="submit" class="button primary" disabled={!model || !good || running}>
          {running ? "Measuring…" : "Measure"}
        </button>
      </form>
      <Outcome run={bench.run} />
    </div>
  );
}
