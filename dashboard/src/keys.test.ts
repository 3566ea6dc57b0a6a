import { expect, test } from "vitest";
import { isWrong, keyBody, noKey, wrongKey } from "./keys";

test("a key is described by what was typed, and the rest is the server's default", () => {
  expect(keyBody({ ...noKey, name: "ci" }, 0)).toEqual({ name: "ci" });
  const form = {
    name: "ci",
    models: "a, b  c,",
    weight: "2.5",
    requests: "60",
    tokens: "1000",
    atOnce: "4",
    group: "team",
    days: "1.5",
  };
  expect(isWrong(wrongKey(form, ["other"]))).toBe(false);
  expect(keyBody(form, 1_000)).toEqual({
    name: "ci",
    models: ["a", "b", "c"],
    weight: 2.5,
    requests_per_min: 60,
    tokens_per_min: 1000,
    max_in_flight: 4,
    cache_group: "team",
    expires_unix_s: 130_600,
  });
});

test("a wrong value is told at its field", () => {
  const taken = wrongKey({ ...noKey, name: "ci" }, ["ci"]);
  expect(taken.name).toContain("already");
  const all = { name: "a b", weight: "0", requests: "-1", tokens: "1.5", atOnce: "x", days: "0" };
  const wrong = wrongKey({ ...noKey, ...all, group: "a/b" }, []);
  const { models, ...told } = wrong;
  expect(models).toBe("");
  expect(Object.values(told)).not.toContain("");
  for (const weight of ["0.001", "101", "x", "1e999"]) {
    expect(wrongKey({ ...noKey, weight }, []).weight).not.toBe("");
  }
});
