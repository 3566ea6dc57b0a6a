import { expect, test } from "vitest";
import { append, linesMax, noLog, type Setting, wrongSetting } from "./operations";

test("a log's lines are put together from pieces, and only the newest are kept", () => {
  let log = append(noLog, "one\ntw");
  log = append(log, "o\nthree");
  expect(log).toEqual({ lines: ["one", "two"], rest: "three", dropped: 0 });
  log = append(log, "\n".repeat(linesMax));
  expect(log.lines.length).toBe(linesMax);
  expect(log.dropped).toBe(2);
});

test("a setting's value is a number in its range", () => {
  const setting = { min: 1, max: 64 } as Setting;
  for (const bad of ["", "0", "65", "x", "NaN"]) expect(wrongSetting(setting, bad)).not.toBe("");
  expect(wrongSetting(setting, "8")).toBe("");
});
