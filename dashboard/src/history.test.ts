import { describe, expect, test } from "vitest";
import { alone, extend, type History, history, type Sample } from "./history";

const at = (unix_s: number, pool = "a"): Sample => ({
  pool,
  node: "",
  unix_s,
  tokens_per_s: unix_s,
  queue: 0,
  in_flight: 1,
  replicas_live: 2,
  ttft_p50_ms: null,
  ttft_p99_ms: null,
  gap_p50_ms: null,
  gap_p99_ms: null,
  cached_share: null,
});
const empty: History = { range_s: 20, step_s: 5, pools: [] };

describe("extend", () => {
  test("adds a new pool, a new point, and drops what is older than the range", () => {
    let known = extend(empty, [at(5)]);
    for (const time of [10, 15, 20, 25, 30]) known = extend(known, [at(time)]);
    expect(known.pools[0]?.unix_s).toEqual([15, 20, 25, 30]);
    expect(known.pools[0]?.tokens_per_s).toEqual([15, 20, 25, 30]);
    expect(extend(known, [at(30, "b")]).pools.map((pool) => pool.pool)).toEqual(["a", "b"]);
  });

  test("a sample that is known, or closer than a step, changes nothing", () => {
    const known = extend(empty, [at(10)]);
    expect(extend(known, [at(10)])).toBe(known);
    expect(extend({ ...known, step_s: 240 }, [at(100)]).pools[0]?.unix_s).toEqual([10]);
  });
});

test("the server's series decode, nulls included", () => {
  const series = {
    ...{ pool: "a", unix_s: [5], tokens_per_s: [1.5], queue: [0], in_flight: [0] },
    ...{ replicas_live: [1], ttft_p50_ms: [null], ttft_p99_ms: [null] },
    ...{ gap_p50_ms: [null], gap_p99_ms: [12], cached_share: [0.5], node: null },
  };
  const known = history({ range_s: 900, step_s: 5, pools: [series] }, "");
  expect(known.pools[0]?.ttft_p50_ms).toEqual([null]);
});

test("samples without a neighbour are found, to be drawn as points", () => {
  expect(alone([])).toEqual([]);
  expect(alone([4])).toEqual([0]);
  expect(alone([0, null, 1, 2, null, null, 3])).toEqual([0, 6]);
  expect(alone([1, 2, 3])).toEqual([]);
});
