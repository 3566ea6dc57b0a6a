import { useEffect, useState } from "preact/hooks";
import { type Fleet } from "../api";
import { extend, type History, history, historyPath, ranges } from "../history";
import { Charts } from "../panels/charts";
import { Requests } from "../panels/requests";
import { Sessions } from "../panels/sessions";
import { Choice } from "../parts/choice";
import { Unavailable } from "../parts/unavailable";
import { useAsked } from "../use_asked";

const poolsAtOnce = 6;

// The last minutes or hours: read once, then the stream goes on with it.
function useHistory(fleet: Fleet, range_s: number, generation: number) {
  const asked = useAsked(historyPath(range_s), history, generation);
  const [known, set] = useState<History | null>(null);
  useEffect(() => {
    if (asked.tag === "known") set(asked.value);
  }, [asked]);
  useEffect(() => set((before) => before && extend(before, fleet.history)), [fleet]);
  return { asked, known };
}

export function LivePage({ fleet, generation }: { fleet: Fleet; generation: number }) {
  const [range_s, setRange] = useState<number>(ranges[0].s);
  const [only, setOnly] = useState("");
  const { asked, known } = useHistory(fleet, range_s, generation);
  const names = known?.pools.map((series) => series.pool) ?? [];
  const pools = (known?.pools ?? [])
    .filter((series) => !names.includes(only) || series.pool === only)
    .slice(0, poolsAtOnce);
  return (
    <div class="page">
      <header class="page-head">
        <h2>Live</h2>
        <span class="spring" />
        {names.length > 1 && (
          <select
            class="search"
            aria-label="Pools shown"
            value={names.includes(only) ? only : ""}
            onChange={(event) => setOnly(event.currentTarget.value)}
          >
            <option value="">All pools</option>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        <Choice
          name="Time shown"
          options={ranges.map((range) => ({ value: range.s, label: range.label }))}
          chosen={range_s}
          choose={setRange}
        />
      </header>
      {asked.tag === "missing" && <Unavailable what="a history" route="GET /admin/history" />}
      {asked.tag === "failed" && <p class="panel trouble">{asked.message}</p>}
      {known && pools.length > 0 && <Charts history={known} pools={pools} />}
      {known && pools.length === 0 && (
        <p class="panel muted">The charts begin as soon as a model is loaded.</p>
      )}
      <Requests fleet={fleet} />
      <Sessions generation={generation} />
    </div>
  );
}
