import { expect, test } from "vitest";
import { bodyOf, newNode, spec, wrongNode } from "./cluster_spec";

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

test("wrong values are found", () => {
  const known = spec(told, "");
  const two = { ...known, nodes: [...known.nodes, ...known.nodes] };
  const [node] = known.nodes;
  if (!node) throw new Error("no node");
  expect(wrongNode(node, two).id).toBe("Two nodes have this id.");
  expect(wrongNode({ ...node, transport: "http", url: "a:80" }, known).where).not.toBe("");
  expect(wrongNode({ ...node, transport: "ssh", host: "-oProxy" }, known).where).not.toBe("");
  expect(wrongNode(node, known)).toEqual({ id: "", where: "" });
});
