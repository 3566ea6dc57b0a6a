import { type Figure, type History, nameOf, type Series } from "../history";
import { Chart, type Line } from "../parts/chart";

const ms = (value: number) =>
  value >= 1000
    ? `${(value / 1000).toFixed(value >= 10_000 ? 0 : 1)} s`
    : `${Math.round(value)} ms`;
const whole = (value: number) =>
  Number.isInteger(value) || value >= 100 ? value.toFixed(0) : value.toFixed(1);

interface Plot {
  title: string;
  unit: string;
  figures: [figure: Figure, suffix: string, dashed: boolean][];
  format: (value: number) => string;
}

const plots: Plot[] = [
  { title: "Tokens per second", unit: "", figures: [["tokens_per_s", "", false]], format: whole },
  {
    title: "Time to the first token",
    unit: "from arrival, the queue included",
    figures: [
      ["ttft_p50_ms", " p50", false],
      ["ttft_p99_ms", " p99", true],
    ],
    format: ms,
  },
  {
    title: "Between two tokens",
    unit: "of one answer",
    figures: [
      ["gap_p50_ms", " p50", false],
      ["gap_p99_ms", " p99", true],
    ],
    format: ms,
  },
  {
    title: "Queue and work",
    unit: "requests",
    figures: [
      ["queue", " waiting", false],
      ["in_flight", " in flight", true],
    ],
    format: whole,
  },
  {
    title: "Prompt tokens from the cache",
    unit: "share of what was asked",
    figures: [["cached_share", "", false]],
    format: (value) => `${Math.round(value * 100)} %`,
  },
];

// All pools on one line of time: where a pool has no sample there is no value.
export function align(pools: readonly Series[]): { times: number[]; at: Map<number, number> } {
  const times = [...new Set(pools.flatMap((pool) => pool.unix_s))].sort((a, b) => a - b);
  return { times, at: new Map(times.map((time, index) => [time, index])) };
}

function linesOf(plot: Plot, pools: readonly Series[], at: Map<number, number>): Line[] {
  return pools.flatMap((pool, colour) =>
    plot.figures.map(([figure, suffix, dashed]) => {
      const values = new Array<number | null>(at.size).fill(null);
      pool.unix_s.forEach((time, index) => {
        values[at.get(time) ?? 0] = pool[figure][index] ?? null;
      });
      const label = pools.length > 1 ? `${nameOf(pool)}${suffix}` : suffix.trim() || nameOf(pool);
      return { label, colour: dashed && pools.length === 1 ? 1 : colour, dashed, values };
    }),
  );
}

export function Charts({ history, lines }: { history: History; lines: readonly Series[] }) {
  const { times, at } = align(lines);
  return (
    <div class="charts">
      {plots.map((plot) => (
        <Chart
          key={plot.title}
          title={plot.title}
          unit={plot.unit}
          times={times}
          lines={linesOf(plot, lines, at)}
          range_s={history.range_s}
          format={plot.format}
        />
      ))}
    </div>
  );
}
