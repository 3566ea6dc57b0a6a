import { useEffect, useState } from "preact/hooks";
import { type Fleet } from "../api";
import { type By, extend, type History, history, historyPath, ranges } from "../history";
import { Charts } from "../panels/charts";
import { Requests } from "../panels/requests";
import { Sessions } from "../panels/sessions";
import { Choice } from "../parts/choice";
import { type Request } from "../requests";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { useAsked } from "../use_asked";

const linesAtOnce = 6;
const bys: { value: By; label: string }[] = [
  { value: "pool", label: "Pools" },
  { value: "replica", label: "Replicas" },
];

interface Wanted {
  range_s: number;
  by: By;
  pool: string;
}

// The last minutes or hours: read once, then the stream goes on with it.
function useHistory(fleet: Fleet, wanted: Wanted, generation: number) {
  const { range_s, by, pool } = wanted;
  const path = historyPath(range_s, by, pool);
  const asked = useAsked(path, history, generation);
  const [known, set] = useState<History | null>(null);
  const ours = fleet.history.filter((sample) =>
    by === "replica" ? sample.node !== "" && sample.pool === pool : sample.node === "",
  );
  useEffect(() => set(null), [path]);
  useEffect(() => {
    if (asked.tag === "known") set(asked.value);
  }, [asked]);
  useEffect(() => set((before) => before && extend(before, ours)), [fleet]);
  return { asked, known };
}

interface Props {
  fleet: Fleet;
  requests: readonly Request[] | null;
  generation: number;
}

export function LivePage({ fleet, requests, generation }: Props) {
  const [range_s, setRange] = useState<number>(ranges[0].s);
  const [only, setOnly] = useState("");
  const [by, split] = useState<By>("pool");
  const [node, setNode] = useState("");
  const aliases = fleet.clusters.flatMap((cluster) => cluster.pools.map((pool) => pool.alias));
  const one = aliases.includes(only) ? only : (aliases[0] ?? "");
  const { asked, known } = useHistory(fleet, { range_s, by, pool: one }, generation);
  const names = [...new Set([...(known?.pools.map((series) => series.pool) ?? []), ...aliases])];
  const found = (known?.pools ?? []).filter(
    (series) => by === "replica" || !names.includes(only) || series.pool === only,
  );
  const nodes = by === "replica" ? found.map((series) => series.node).filter(Boolean) : [];
  const wanted = nodes.includes(node) ? found.filter((series) => series.node === node) : found;
  const lines = wanted.slice(0, linesAtOnce);
  return (
    <div class="page">
      <header class="page-head">
        <h2>Live</h2>
        <span class="spring" />
        {names.length > 1 && (
          <select
            class="search"
            aria-label="Pools shown"
            value={by === "replica" ? one : names.includes(only) ? only : ""}
            onChange={(event) => setOnly(event.currentTarget.value)}
          >
            {by === "pool" && <option value="">All pools</option>}
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        {nodes.length > 1 && (
          <select
            class="search"
            aria-label="Replicas shown"
            value={nodes.includes(node) ? node : ""}
            onChange={(event) => setNode(event.currentTarget.value)}
          >
            <option value="">All replicas</option>
            {nodes.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        <Choice
          name="Lines for"
          options={bys}
          chosen={by}
          choose={split}
        />
        <Choice
          name="Time shown"
          options={ranges.map((range) => ({ value: range.s, label: range.label }))}
          chosen={range_s}
          choose={setRange}
        />
      </header>
      {asked.tag === "missing" && <Unavailable what="a history" route="GET /admin/history" />}
      {asked.tag === "failed" && <Trouble words={asked.message} again={asked.again} />}
      {known && lines.length > 0 && <Charts history={known} lines={lines} />}
      {lines.length < wanted.length && (
        <p class="hint" data-part="not-drawn">
          The first {lines.length} of {wanted.length} are drawn; choose one to see it.
        </p>
      )}
      {known && lines.length === 0 && (
        <p class="panel muted">The charts begin as soon as a model is loaded.</p>
      )}
      <Requests requests={requests} />
      <Sessions generation={generation} />
    </div>
  );
}
