// The series of GET /admin/history, and the samples that the stream adds to them.
import { type Decoded, list, number, or, schema, text } from "./decode";

const value = or(number, null);
const values = list(value);

export const sample = schema("HistorySample", {
  pool: text,
  node: or(text, ""), // a replica's; empty: the pool's own
  unix_s: number,
  tokens_per_s: value,
  queue: value,
  in_flight: value,
  replicas_live: value,
  ttft_p50_ms: value,
  ttft_p99_ms: value,
  gap_p50_ms: value,
  gap_p99_ms: value,
  cached_share: value,
});

const series = schema("HistorySeries", {
  pool: text,
  node: or(text, ""),
  unix_s: list(number),
  tokens_per_s: values,
  queue: values,
  in_flight: values,
  replicas_live: values,
  ttft_p50_ms: values,
  ttft_p99_ms: values,
  gap_p50_ms: values,
  gap_p99_ms: values,
  cached_share: values,
});

export type Sample = Decoded<typeof sample>;
export type Series = Decoded<typeof series>;
export type Figure = Exclude<keyof Series, "pool" | "node" | "unix_s">;
export interface History {
  range_s: number;
  step_s: number;
  pools: Series[];
}

export const history = schema("History", {
  range_s: number,
  step_s: or(number, 5),
  pools: list(series),
});

export const figures: Figure[] = [
  "tokens_per_s",
  "queue",
  "in_flight",
  "replicas_live",
  "ttft_p50_ms",
  "ttft_p99_ms",
  "gap_p50_ms",
  "gap_p99_ms",
  "cached_share",
];

export const ranges = [
  { s: 900, label: "15 min" },
  { s: 3_600, label: "1 h" },
  { s: 21_600, label: "6 h" },
  { s: 86_400, label: "24 h" },
] as const;

export type By = "pool" | "replica";

// Of all pools, or of one pool's replicas.
export function historyPath(range_s: number, by: By, pool: string): string {
  const query = new URLSearchParams({ range: String(range_s) });
  if (by === "replica") {
    query.set("by", by);
    query.set("pool", pool);
  }
  return `/admin/history?${query}`;
}

// What a line is called where several are shown.
export const nameOf = (series: Series) => series.node || series.pool;

function withSample(old: Series | undefined, at: Sample, range_s: number): Series {
  const before = old ?? {
    pool: at.pool,
    node: at.node,
    unix_s: [],
    ...(Object.fromEntries(figures.map((name) => [name, []])) as unknown as Record<
      Figure,
      (number | null)[]
    >),
  };
  const from = before.unix_s.findIndex((t) => t > at.unix_s - range_s);
  const kept = from < 0 ? before.unix_s.length : from;
  const next: Series = { ...before, unix_s: [...before.unix_s.slice(kept), at.unix_s] };
  for (const name of figures) next[name] = [...before[name].slice(kept), at[name]];
  return next;
}

// A point a step: what comes between two points of a long range waits for the next reading.
export function extend(known: History, samples: readonly Sample[]): History {
  let pools = known.pools;
  for (const at of samples) {
    const old = pools.find((entry) => entry.pool === at.pool && entry.node === at.node);
    if (at.unix_s < (old?.unix_s.at(-1) ?? 0) + known.step_s) continue;
    const next = withSample(old, at, known.range_s);
    pools = old ? pools.map((entry) => (entry === old ? next : entry)) : [...pools, next];
  }
  return pools === known.pools ? known : { ...known, pools };
}

// The samples that no line leads to or from: alone, or with nothing known on either side.
export function alone(values: readonly (number | null | undefined)[]): number[] {
  const known = (at: number) => (values[at] ?? null) !== null;
  return [...values.keys()].filter((at) => known(at) && !known(at - 1) && !known(at + 1));
}
