import { expect, it } from "vitest";
import { backoffMs, newestOf, takeEvents } from "./follow";

it("takes events out of chunks wherever they are cut", () => {
  const wire = ': comment\n\ndata: {"a":1}\n\ndata:x\ndata: y\r\n\r\nevent: state\ndata: 3\n\n';
  for (let cut = 0; cut <= wire.length; cut += 1) {
    const first = takeEvents(wire.slice(0, cut));
    const second = takeEvents(first.rest + wire.slice(cut));
    expect([...first.events, ...second.events]).toEqual([
      { name: "", data: '{"a":1}' },
      { name: "", data: "x\ny" },
      { name: "state", data: "3" },
    ]);
    expect(second.rest).toBe("");
  }
});

it("keeps of each name the newest", () => {
  const { events } = takeEvents("data: 1\n\nevent: nodes\ndata: 2\n\ndata: 3\n\n");
  expect([...newestOf(events)]).toEqual([
    ["", "3"],
    ["nodes", "2"],
  ]);
});

it("waits longer after each failed attempt, up to a bound", () => {
  expect([0, 1, 2, 3, 4, 5, 50].map((attempt) => backoffMs(attempt, 0))).toEqual([
    500, 1000, 2000, 4000, 8000, 10_000, 10_000,
  ]);
  expect(backoffMs(50, 1)).toBe(12_000);
});
