import { expect, test } from "vitest";
import { bodyOf, isWrong, newNode, nodeBody, spec, wrongLabel, wrongNode } from "./cluster_spec";

const told = {
  id: "desk",
  label: "Desk",
  kind: "replica",
  reload_on_restart: false,
  models_dir: "",
  nodes: [{ id: "desk-1", label: "one", transport: "local", env: { OMP_NUM_THREADS: "2" } }],
};

test("what the page does not show goes back as it came", () => {
  expect(bodyOf(spec(told, ""))).toEqual(told);
});

test("a node's fields fit the way it is reached", () => {
  const known = spec(told, "");
  const node = { ...newNode(known), transport: "http", url: "http://a:8080/v1", host: "old" };
  expect(node.id).toBe("desk-2");
  const body = bodyOf({ ...known, nodes: [node] });
  expect(body).toMatchObject({
    nodes: [{ id: "desk-2", transport: "http", url: "http://a:8080/v1" }],
  });
  expect(JSON.stringify(body)).not.toContain("old");
});

test("figures are sent as numbers, a key only where it was typed", () => {
  const known = spec(told, "");
  const ssh = { ...newNode(known), transport: "ssh", host: "a", port: "2222", threads: "4" };
  const http = { ...newNode(known), transport: "http", url: "http://a/v1", port: "1" };
  expect(nodeBody(ssh)).toEqual({ id: "desk-2", transport: "ssh", host: "a", port: 2222, threads: 4 });
  expect(nodeBody(http)).toEqual({ id: "desk-2", transport: "http", url: "http://a/v1" });
  expect(nodeBody({ ...http, api_key: "k" })).toMatchObject({ api_key: "k" });
  expect(nodeBody({ ...ssh, api_key: "k" })).not.toHaveProperty("api_key");
});

test("wrong values are found", () => {
  const known = spec(told, "");
  const two = { ...known, nodes: [...known.nodes, ...known.nodes] };
  const [node] = known.nodes;
  if (!node) throw new Error("no node");
  expect(wrongNode(node, two).id).toBe("Two nodes have this id.");
  expect(wrongNode({ ...node, transport: "http", url: "a:80" }, known).where).not.toBe("");
  expect(wrongNode({ ...node, transport: "ssh", host: "-oProxy" }, known).where).not.toBe("");
  const ssh = { ...node, transport: "ssh", host: "a" };
  expect(isWrong(ssh, known)).toBe(false);
  for (const wrong of [
    { user: "-x" },
    { port: "70000" },
    { port: "22x" },
    { threads: "0" },
    { models_dir: "models" },
    { flotilla_path: "flotilla" },
    { flotilla_path: "/bin/f;x" },
  ]) {
    expect(isWrong({ ...ssh, ...wrong }, known), JSON.stringify(wrong)).toBe(true);
  }
  expect(isWrong(node, known)).toBe(false);
});

test("addresses and labels are those that the server takes", () => {
  const known = spec(told, "");
  const where = (changes: object) => wrongNode({ ...newNode(known), ...changes }, known).where;
  for (const url of ["http://a", "https://a:8080/v1", "http://[::1]:8080/v1?x=1"]) {
    expect(where({ transport: "http", url }), url).toBe("");
  }
  for (const url of ["http://", "a:80", "http://a b/v1", "http://a/v 1", "http://me:key@a/v1"]) {
    expect(where({ transport: "http", url }), url).not.toBe("");
  }
  for (const host of ["a", "mini-a.lan", "::1", "10.0.0.5", "_x"]) {
    expect(where({ transport: "ssh", host }), host).toBe("");
  }
  for (const host of ["", "-oProxy", "a b", "me@a", "a".repeat(256)]) {
    expect(where({ transport: "ssh", host }), host).not.toBe("");
  }
  expect(wrongLabel("é".repeat(100))).toBe("");
  expect(wrongLabel("é".repeat(100), 3)).toBe("At most 197 bytes.");
});
