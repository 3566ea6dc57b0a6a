import { expect, it } from "vitest";
import {
  allNodes,
  basename,
  bytes,
  count,
  duration,
  minuteOf,
  momentOf,
  rate,
  secondOf,
  sentence,
} from "./format";

it("writes rates with three digits", () => {
  expect([0, 0.04, 9.96, 38.24, 99.94, 100, 9999, 12_345].map(rate)).toEqual([
    "0",
    "0.0",
    "10.0",
    "38.2",
    "99.9",
    "100",
    "9999",
    "12.3k",
  ]);
});

it("writes bytes with a unit and never 1000 of one", () => {
  expect([0, 999, 1000, 98_000_000, 999_600_000, 4.68e9, 5e15].map(bytes)).toEqual([
    "0 B",
    "999 B",
    "1.0 kB",
    "98.0 MB",
    "1.0 GB",
    "4.7 GB",
    "5000 TB",
  ]);
});

it("writes durations rounded up, so that a countdown ends with 1 s", () => {
  expect([-3, 0, 0.2, 59.1, 61, 3600].map(duration)).toEqual([
    "0 s",
    "0 s",
    "1 s",
    "1 min 00 s",
    "1 min 01 s",
    "1 h 00 min",
  ]);
});

it("counts one thing and many things", () => {
  expect([
    count(1, "node"),
    count(2, "node"),
    count(1, "copy", "copies"),
    count(0, "copy", "copies"),
  ]).toEqual(["1 node", "2 nodes", "1 copy", "0 copies"]);
});

it("finds a file's name", () => {
  expect([basename("/a/b.gguf"), basename("b.gguf"), basename("/a/")]).toEqual([
    "b.gguf",
    "b.gguf",
    "/a/",
  ]);
});

it("writes times of day with 24 hours", () => {
  const evening = new Date(2026, 11, 1, 21, 5, 6).getTime();
  expect(minuteOf(evening)).toBe("21:05");
  expect(secondOf(evening)).toBe("21:05:06");
  expect(momentOf(evening)).toBe("2026-12-01 21:05:06");
  expect(secondOf(new Date(2026, 11, 1).getTime())).toBe("00:00:00");
});

it("begins a sentence with a capital", () => {
  expect(["this is wrong", "The end", ""].map(sentence)).toEqual(["This is wrong", "The end", ""]);
});

it("says of all nodes how many they are", () => {
  expect([1, 2, 3].map(allNodes)).toEqual(["its node", "both nodes", "all 3 nodes"]);
});
