// The page's state: pure values and the functions from one to the next. No clock, no DOM.
import { type Cluster, type Fleet, type Pool, type Replica } from "./api";
import { type Told } from "./told";

// A stream is in exactly one of these; whoever shows one handles all four.
export type Stream<T> =
  | { tag: "connecting" }
  | { tag: "live"; value: T; at: number }
  | { tag: "stale"; value: T; at: number }
  | { tag: "error"; message: string; retry_at: number; last: { value: T; at: number } | null };

export type Signal<T> =
  | { tag: "connecting" }
  | { tag: "event"; value: T; at: number }
  | { tag: "silent" }
  | { tag: "failed"; message: string; retry_at: number };

// The newest value that came, however long ago.
export function lastOf<T>(stream: Stream<T>): { value: T; at: number } | null {
  switch (stream.tag) {
    case "connecting":
      return null;
    case "live":
    case "stale":
      return { value: stream.value, at: stream.at };
    case "error":
      return stream.last;
  }
}

export function advance<T>(stream: Stream<T>, signal: Signal<T>): Stream<T> {
  switch (signal.tag) {
    case "connecting":
      return stream; // what is shown stays until there is something better
    case "event":
      return { tag: "live", value: signal.value, at: signal.at };
    case "silent":
      return stream.tag === "live" ? { ...stream, tag: "stale" } : stream;
    case "failed": {
      const { message, retry_at } = signal;
      return { tag: "error", message, retry_at, last: lastOf(stream) };
    }
  }
}

// Tokens per second of the last two minutes, one sample a second, null where nothing was heard.
export type Track = readonly (number | null)[];
export interface Tracks {
  second: number;
  by: ReadonlyMap<string, Track>;
  ttft_ms: ReadonlyMap<string, number>; // of each replica, in the last step that had one
}

export const trackSeconds = 120;
export const fleetTrack = "";
export const noTracks: Tracks = { second: 0, by: new Map(), ttft_ms: new Map() };
export const poolTrack = (cluster: string, alias: string) => `${cluster}/${alias}`;
export const replicaTrack = (pool: string, node: string) => `${pool}/${node}`;

// What was measured of a replica stays until it is measured again.
function firstTokens(before: Tracks["ttft_ms"], fleet: Fleet): Tracks["ttft_ms"] {
  const known = new Map<string, number>();
  for (const { alias, replicas } of fleet.clusters.flatMap((cluster) => cluster.pools)) {
    for (const { node } of replicas) {
      const key = replicaTrack(alias, node);
      const newest = fleet.history.find((entry) => entry.pool === alias && entry.node === node);
      const ms = newest?.ttft_p50_ms ?? before.get(key);
      if (ms !== undefined) known.set(key, ms);
    }
  }
  return known;
}

export function sample(tracks: Tracks, fleet: Fleet, at: number): Tracks {
  const ttft_ms = firstTokens(tracks.ttft_ms, fleet);
  const second = Math.floor(at / 1000);
  if (second <= tracks.second) return { ...tracks, ttft_ms };
  const gap = Math.min(tracks.second ? second - tracks.second - 1 : 0, trackSeconds);
  const by = new Map<string, Track>();
  const add = (key: string, value: number) => {
    const before = tracks.by.get(key) ?? [];
    // An event every 2 s is the heartbeat of a fleet where nothing changes: no hole in the line.
    const between = new Array<number | null>(gap).fill(gap <= 2 ? (before.at(-1) ?? null) : null);
    by.set(key, [...before, ...between, value].slice(-trackSeconds));
  };
  add(fleetTrack, totals(fleet).tokens_per_s);
  for (const cluster of fleet.clusters) {
    for (const pool of cluster.pools) {
      const track = poolTrack(cluster.id, pool.alias);
      add(track, pool.tokens_per_s);
      for (const { node, tokens_per_s } of pool.replicas) {
        add(replicaTrack(track, node), tokens_per_s);
      }
    }
  }
  return { second, by, ttft_ms };
}

export interface Totals {
  tokens_per_s: number;
  in_flight: number;
  queue_depth: number;
  replicas_live: number;
  replicas_total: number;
  nodes_up: number;
  nodes_total: number;
}

export function totals(fleet: Fleet): Totals {
  const pools = fleet.clusters.flatMap((cluster) => cluster.pools);
  // A node's id is global: one machine in two clusters is one node.
  const nodes = new Map(fleet.clusters.flatMap((c) => c.nodes.map((node) => [node.id, node])));
  const sum = (of: (pool: Pool) => number) => pools.reduce((total, pool) => total + of(pool), 0);
  return {
    tokens_per_s: sum((pool) => pool.tokens_per_s),
    in_flight: sum((pool) => pool.in_flight),
    queue_depth: sum((pool) => pool.queue_depth),
    replicas_live: sum((pool) => pool.replicas_live),
    replicas_total: sum((pool) => pool.replicas_total),
    nodes_up: [...nodes.values()].filter((node) => node.state === "up").length,
    nodes_total: nodes.size,
  };
}

// Pools with something to show: one whose first replica still loads is shown by its load alone.
export function poolsShown(cluster: Cluster): Pool[] {
  const loading = new Set(cluster.loading.map((entry) => entry.alias));
  return cluster.pools.filter((pool) => pool.replicas_live > 0 || !loading.has(pool.alias));
}

export type Health = "idle" | "loading" | "ok" | "degraded" | "out";

export function healthOf(fleet: Fleet): Health {
  const pools = fleet.clusters.flatMap(poolsShown);
  if (pools.length === 0) {
    return fleet.clusters.some((cluster) => cluster.loading.length > 0) ? "loading" : "idle";
  }
  if (pools.every((pool) => pool.replicas_live === 0)) return "out";
  return pools.every((pool) => pool.replicas_live === pool.replicas_total) ? "ok" : "degraded";
}

export const ttftOf = (tracks: Tracks, alias: string, node: string): number | null =>
  tracks.ttft_ms.get(replicaTrack(alias, node)) ?? null;

export const widthOf = (pool: Pool) => (pool.batch ? Math.max(1, pool.batch_size) : 1);

// A drained replica lives on and takes nothing new: the server calls it draining until it is resumed.
export const isDraining = (replica: Replica) => replica.live && replica.state === "draining";
export const stateWord = (replica: Replica) =>
  isDraining(replica) && replica.busy_count === 0 ? "drained" : replica.state;

export function aliasesOf(cluster: Cluster): Set<string> {
  return new Set([...cluster.pools, ...cluster.loading].map((entry) => entry.alias));
}

// An error that stays until the operator dismisses it.
export interface Notice {
  id: number;
  title: string;
  detail: string;
  at: number;
}

// Closed: the server wants somebody to log in first.
export type Access = "open" | "closed";

export interface State {
  fleet: Stream<Fleet>;
  tracks: Tracks;
  notices: readonly Notice[];
  connections: number; // how often the stream began: what was read before may be old
  access: Access;
  told: Told;
}

export type Action =
  | { tag: "fleet"; signal: Signal<Fleet> }
  | { tag: "notice"; title: string; detail: string; at: number }
  | { tag: "dismiss"; id: number }
  | { tag: "access"; access: Access }
  | { tag: "told"; told: Partial<Told> };

export const initial: State = {
  fleet: { tag: "connecting" },
  tracks: noTracks,
  notices: [],
  connections: 0,
  access: "open",
  told: { nodes: null, requests: null, audit: null },
};

export function reduce(state: State, action: Action): State {
  switch (action.tag) {
    case "fleet": {
      const { signal } = action;
      const fleet = advance(state.fleet, signal);
      if (signal.tag !== "event") return fleet === state.fleet ? state : { ...state, fleet };
      const began = state.fleet.tag === "connecting" || state.fleet.tag === "error";
      const connections = state.connections + (began ? 1 : 0);
      const tracks = sample(state.tracks, signal.value, signal.at);
      return { ...state, fleet, tracks, connections };
    }
    case "notice": {
      const { title, detail, at } = action;
      const id = (state.notices.at(-1)?.id ?? 0) + 1;
      return { ...state, notices: [...state.notices, { id, title, detail, at }].slice(-20) };
    }
    case "dismiss":
      return { ...state, notices: state.notices.filter((notice) => notice.id !== action.id) };
    case "access":
      return { ...state, access: action.access };
    case "told":
      return { ...state, told: { ...state.told, ...action.told } };
  }
}
