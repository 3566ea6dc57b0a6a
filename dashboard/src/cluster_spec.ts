// A cluster as GET /admin/clusters/{c} tells it and PUT takes it back.
import { type Outcome, send } from "./api";
import { type Decoded, type Decoder, list, number, or, schema, text } from "./decode";

// What this page does not know of a thing goes back as it came.
type Kept<T> = T & { kept: object };
function keeping<T extends object, I>(inner: Decoder<T, I>): Decoder<Kept<T>, I> {
  return (value, path) => {
    const known = inner(value, path);
    const entries = Object.entries(value as object).filter(([name]) => !(name in known));
    return { ...known, kept: Object.fromEntries(entries) };
  };
}

// A number as it stands in its field, where it may also be wrong; empty: none.
const figure: Decoder<string, number | null | undefined> = (value, path) =>
  value === null || value === undefined ? "" : String(number(value, path));

// A key is never shown: one that is typed is sent, none leaves what is stored.
function withKey<T extends object, I>(inner: Decoder<T, I>): Decoder<T & { api_key: string }, I> {
  return (value, path) => ({ ...inner(value, path), api_key: "" });
}

const node = withKey(
  keeping(
    schema("NodeDeclared", {
      id: text,
      label: or(text, ""),
      transport: or(text, "local"),
      host: or(text, ""),
      user: or(text, ""),
      port: figure,
      url: or(text, ""),
      upstream_model: or(text, ""),
      flotilla_path: or(text, ""),
      models_dir: or(text, ""),
      threads: figure,
    }),
  ),
);

export const spec = keeping(
  schema("ClusterDeclared", {
    id: text,
    label: or(text, ""),
    models_dir: or(text, ""),
    nodes: or(list(node), []),
  }),
);

export type NodeSpec = Decoded<typeof node>;
export type Spec = Decoded<typeof spec>;

export const transports = ["local", "ssh", "http"] as const;

export function newNode(spec: Spec, transport = "local"): NodeSpec {
  let number = spec.nodes.length + 1;
  while (spec.nodes.some((n) => n.id === `${spec.id}-${number}`)) number += 1;
  const blank = { label: "", host: "", user: "", url: "", upstream_model: "" };
  const rest = { flotilla_path: "", models_dir: "", port: "", threads: "", kept: {} };
  return { id: `${spec.id}-${number}`, transport, ...blank, ...rest, api_key: "" };
}

// A cluster that is not there yet: nodes on this machine, and others.
export interface NewCluster {
  id: string;
  label: string;
  models_dir: string;
  local: number;
  others: NodeSpec[];
}

export function specOf({ id, label, models_dir, local, others }: NewCluster): Spec {
  const base = { id, label, models_dir, nodes: [], kept: {} };
  const nodes = Array.from({ length: local }, (_, index) => ({
    ...newNode(base),
    id: `${id}-${index + 1}`,
    label: `${label || id} ${index + 1}`,
  }));
  return { ...base, nodes: [...nodes, ...others] };
}

export function putCluster(made: NewCluster): Promise<Outcome> {
  const { id, label, models_dir, nodes } = specOf(made);
  return send("PUT", `/admin/clusters/${encodeURIComponent(id)}`, {
    id,
    label,
    kind: "replica",
    ...(models_dir ? { models_dir } : {}),
    nodes: nodes.map(nodeBody),
  });
}

const idForm = /^[a-z0-9][a-z0-9-]{0,40}$/;

// In bytes; `more`: what is added to it in the labels of nodes.
const labelMax = 200;
export function wrongLabel(label: string, more = 0): string {
  const most = labelMax - more;
  return new TextEncoder().encode(label.trim()).length <= most ? "" : `At most ${most} bytes.`;
}

export const wrongFolder = (folder: string) =>
  folder.trim() === "" || folder.trim().startsWith("/")
    ? ""
    : "A whole path, beginning with a slash, or empty.";

const wrongFigure = (text: string, most: number) =>
  text === "" || (/^[0-9]+$/.test(text) && Number(text) >= 1 && Number(text) <= most)
    ? ""
    : `A whole number from 1 to ${most}, or empty.`;

// What is wrong with a node's fields, each by its name; empty: nothing.
export interface WrongNode {
  id: string;
  where: string;
  user: string;
  port: string;
  threads: string;
  models_dir: string;
  flotilla_path: string;
}

export function wrongNode(node: NodeSpec, spec: Spec): WrongNode {
  const twice = spec.nodes.filter((other) => other.id === node.id).length > 1;
  const id = !idForm.test(node.id)
    ? "Small letters, digits and dashes."
    : twice
      ? "Two nodes have this id."
      : "";
  let where = "";
  if (node.transport === "http" && !/^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/.test(node.url)) {
    where = "A whole address, as http://host:8080/v1, without user or password.";
  }
  if (node.transport === "ssh" && !/^[A-Za-z0-9._:][A-Za-z0-9._:-]{0,254}$/.test(node.host)) {
    where = "A host's name or address.";
  }
  const ssh = node.transport === "ssh";
  const program = /^(\/[A-Za-z0-9._+/-]*[A-Za-z0-9._+-])?$/.test(node.flotilla_path);
  return {
    id,
    where,
    user:
      ssh && !/^([A-Za-z0-9._][A-Za-z0-9._-]{0,63})?$/.test(node.user)
        ? "Letters, digits, dots, dashes and underscores."
        : "",
    port: ssh ? wrongFigure(node.port, 65_535) : "",
    threads: node.transport === "http" ? "" : wrongFigure(node.threads, 1024),
    models_dir: node.transport === "http" ? "" : wrongFolder(node.models_dir),
    flotilla_path: ssh && !program ? "A whole path, beginning with a slash, or empty." : "",
  };
}

export const isWrong = (node: NodeSpec, spec: Spec) =>
  Object.values(wrongNode(node, spec)).some(Boolean);

const onlyFor: Record<string, readonly string[]> = {
  ssh: ["host", "user", "port", "flotilla_path"],
  http: ["url", "upstream_model", "api_key"],
};

// What is empty is left out, so that the server's own default holds; and what belongs to another
// way of reaching the node.
export function nodeBody(node: NodeSpec): object {
  const { kept, port, threads, ...texts } = node;
  const known = { ...texts, port: Number(port) || null, threads: Number(threads) || null };
  const foreign = Object.entries(onlyFor).flatMap(([way, names]) =>
    way === node.transport ? [] : names,
  );
  const filled = Object.entries(known).filter(
    ([name, value]) => value !== "" && value !== null && !foreign.includes(name),
  );
  return { ...kept, ...Object.fromEntries(filled) };
}

export function bodyOf({ kept, ...known }: Spec): object {
  return { ...kept, ...known, nodes: known.nodes.map(nodeBody) };
}
