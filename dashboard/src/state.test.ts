import { describe, expect, it } from "vitest";
import { type Cluster, decodeFleet, type Fleet, type Pool, type Replica } from "./api";
import {
  advance,
  fleetTrack,
  healthOf,
  initial,
  lastOf,
  noTracks,
  poolTrack,
  reduce,
  sample,
  type Stream,
  totals,
  trackSeconds,
  ttftOf,
  widthOf,
} from "./state";

const pool: Pool = {
  alias: "m",
  model: "/models/m.gguf",
  generation: 1,
  is_replica: true,
  batch: true,
  batch_reason: "",
  batch_size: 8,
  exact_resume: true,
  replicas_live: 2,
  replicas_total: 2,
  queue_depth: 1,
  in_flight: 3,
  tokens_per_s: 50,
  replicas: [],
};
const replica: Replica = {
  ...{ index: 0, node: "n1", host: "", live: true, state: "ready", busy_count: 0, queued: 0 },
  ...{ restarts: 0, attempts: 0, next_retry_in_s: null, last_error: "", log_tail: "" },
  ...{ model_bytes: 0, loaded_bytes: 0, tokens_per_s: 0, resident_bytes: 0 },
};
const node = (id: string, state = "up") => ({
  id,
  label: "",
  transport: "local",
  state,
  reason: "",
});
const cluster: Cluster = {
  id: "c",
  label: "",
  kind: "replica",
  nodes: [node("n1"), node("n2")],
  loading: [],
  pools: [pool],
};
const fleet: Fleet = {
  version: "0.1.0",
  endpoint: "http://h/v1",
  clusters: [cluster],
  history: [],
  transfers: [],
  login: false,
  keys: false,
};
const withPool = (changes: Partial<Pool>): Fleet => ({
  ...fleet,
  clusters: [{ ...cluster, pools: [{ ...pool, ...changes }] }],
});

describe("a stream", () => {
  const connecting: Stream<number> = { tag: "connecting" };
  const live = advance(connecting, { tag: "event", value: 7, at: 10 });

  it("is live after an event, stale after silence, live again after the next event", () => {
    expect(live).toEqual({ tag: "live", value: 7, at: 10 });
    const stale = advance(live, { tag: "silent" });
    expect(stale).toEqual({ tag: "stale", value: 7, at: 10 });
    expect(advance(stale, { tag: "event", value: 8, at: 20 })).toEqual({
      tag: "live",
      value: 8,
      at: 20,
    });
  });

  it("keeps what was last heard through failures and attempts to reconnect", () => {
    const failed = advance(live, { tag: "failed", message: "gone", retry_at: 99 });
    const again = advance(failed, { tag: "connecting" });
    const twice = advance(again, { tag: "failed", message: "still gone", retry_at: 199 });
    expect(twice).toMatchObject({ tag: "error", message: "still gone", retry_at: 199 });
    expect(lastOf(twice)).toEqual({ value: 7, at: 10 });
  });

  it("does not become stale before anything was heard", () => {
    expect(advance(connecting, { tag: "silent" })).toEqual(connecting);
  });
});

describe("tracks", () => {
  it("take one sample a second, for the fleet and for each pool", () => {
    let tracks = sample(noTracks, fleet, 5_000);
    tracks = sample(tracks, withPool({ tokens_per_s: 70 }), 5_400);
    tracks = sample(tracks, withPool({ tokens_per_s: 80 }), 6_100);
    expect(tracks.by.get(fleetTrack)).toEqual([50, 80]);
    expect(tracks.by.get(poolTrack("c", "m"))).toEqual([50, 80]);
  });

  it("bridge a heartbeat's pause and leave a hole where the connection was lost", () => {
    const heartbeat = sample(sample(noTracks, fleet, 1_000), fleet, 3_000);
    expect(heartbeat.by.get(fleetTrack)).toEqual([50, 50, 50]);
    const lost = sample(heartbeat, fleet, 8_000);
    expect(lost.by.get(fleetTrack)).toEqual([50, 50, 50, null, null, null, null, 50]);
  });

  it("are bounded, however long the page is open or was asleep", () => {
    let tracks = noTracks;
    for (let second = 1; second <= 3 * trackSeconds; second += 1)
      tracks = sample(tracks, fleet, second * 1000);
    expect(tracks.by.get(fleetTrack)).toHaveLength(trackSeconds);
    tracks = sample(tracks, fleet, 1e9);
    expect(tracks.by.get(fleetTrack)).toHaveLength(trackSeconds);
  });

  it("keep a replica's time to the first token until it is measured again", () => {
    const measured = (ttft_p50_ms: number | null): Fleet => {
      const figures = { queue: 0, in_flight: 0, replicas_live: 1, ttft_p99_ms: null };
      const rest = { gap_p50_ms: null, gap_p99_ms: null, cached_share: null, tokens_per_s: 0 };
      const entry = { pool: "m", node: "n1", unix_s: 5, ttft_p50_ms, ...figures, ...rest };
      return { ...withPool({ replicas: [replica] }), history: [entry] };
    };
    let tracks = sample(noTracks, measured(null), 1_000);
    expect(ttftOf(tracks, "m", "n1")).toBe(null);
    tracks = sample(sample(tracks, measured(84), 1_500), measured(null), 6_000);
    expect(ttftOf(tracks, "m", "n1")).toBe(84);
    expect(ttftOf(sample(tracks, measured(21), 9_000), "m", "n1")).toBe(21);
    expect(sample(tracks, { ...fleet, clusters: [] }, 9_000).ttft_ms.size).toBe(0);
  });

  it("forget a pool that is gone", () => {
    const gone = sample(sample(noTracks, fleet, 1_000), { ...fleet, clusters: [] }, 2_000);
    expect([...gone.by.keys()]).toEqual([fleetTrack]);
  });
});

describe("the fleet", () => {
  it("adds up, and counts a node that two clusters share once", () => {
    const twice: Fleet = {
      ...fleet,
      clusters: [cluster, { ...cluster, id: "d", nodes: [node("n1"), node("n3", "down")] }],
    };
    expect(totals(twice)).toEqual({
      tokens_per_s: 100,
      in_flight: 6,
      queue_depth: 2,
      replicas_live: 4,
      replicas_total: 4,
      nodes_up: 2,
      nodes_total: 3,
    });
  });

  it("is idle, loading, ok, degraded or out", () => {
    const loading = [{ alias: "m", elapsed_s: 1, eta_s: null, nodes: [] }];
    expect(healthOf({ ...fleet, clusters: [] })).toBe("idle");
    expect(healthOf({ ...fleet, clusters: [{ ...cluster, pools: [], loading }] })).toBe("loading");
    const first = { ...pool, replicas_live: 0 };
    expect(healthOf({ ...fleet, clusters: [{ ...cluster, pools: [first], loading }] })).toBe(
      "loading",
    );
    expect(healthOf(fleet)).toBe("ok");
    expect(healthOf(withPool({ replicas_live: 1 }))).toBe("degraded");
    expect(healthOf(withPool({ replicas_live: 0 }))).toBe("out");
  });

  it("has a width of one place where nothing is batched", () => {
    expect(widthOf(pool)).toBe(8);
    expect(widthOf({ ...pool, batch: false })).toBe(1);
  });
});

describe("an error notice", () => {
  it("stays until it is dismissed, whatever else happens", () => {
    let state = reduce(initial, { tag: "notice", title: "a", detail: "", at: 1 });
    state = reduce(state, { tag: "notice", title: "b", detail: "", at: 2 });
    state = reduce(state, { tag: "fleet", signal: { tag: "event", value: fleet, at: 3 } });
    expect(state.notices.map((notice) => notice.title)).toEqual(["a", "b"]);
    state = reduce(state, { tag: "dismiss", id: state.notices[0]?.id ?? 0 });
    expect(state.notices.map((notice) => notice.title)).toEqual(["b"]);
  });
});

describe("an event of the stream", () => {
  it("may leave out what there is nothing to say about, and say more than the page knows", () => {
    const said = decodeFleet(
      JSON.stringify({
        version: "9",
        endpoint: "e",
        telemetry: {},
        clusters: [
          {
            id: "c",
            pools: [
              {
                alias: "m",
                model: "x",
                batch: false,
                replicas_live: 0,
                replicas_total: 1,
                replicas: [
                  { index: 0, node: "n", live: false, state: "waiting", next_retry_in_s: 3.5 },
                ],
              },
            ],
          },
        ],
      }),
    );
    expect(said.clusters[0]?.pools[0]?.replicas[0]).toMatchObject({
      next_retry_in_s: 3.5,
      last_error: "",
    });
    expect(said.clusters[0]?.nodes).toEqual([]);
  });

  it("that has another shape is refused, naming the place", () => {
    const bad = { version: "9", endpoint: "e", clusters: [{ id: "c", pools: [{ alias: 5 }] }] };
    expect(() => decodeFleet(JSON.stringify(bad))).toThrow(
      "clusters[0].pools[0].alias should be text, but is 5",
    );
  });
});
