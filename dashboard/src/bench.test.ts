import { expect, test } from "vitest";
import { byNode, type Report, rowsOf, type Stream } from "./bench";

const stream = (number: number, node: string, first_ms: number, last_ms: number): Stream => ({
  number,
  node,
  first_ms,
  last_ms,
  tokens: 100,
  whole: true,
  error: "",
});

test("streams that run together take rows of their own, a later wave takes them over", () => {
  const rows = rowsOf([
    stream(3, "a", 1000, 2000),
    stream(1, "a", 0, 900),
    stream(2, "a", 10, 990),
  ]);
  expect(rows.map((row) => row.map((entry) => entry.number))).toEqual([[1, 3], [2]]);
});

test("what never answered belongs to no replica", () => {
  const none = { ...stream(2, "", 0, 0), tokens: 0, whole: false, error: "429" };
  const report = { streams: [stream(1, "b", 0, 1), none] } as unknown as Report;
  expect(byNode(report).map(([node]) => node)).toEqual(["b"]);
});
