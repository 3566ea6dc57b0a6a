// What the server says and takes (/admin), and nothing about how it looks.
import { request } from "./access";
import {
  type Decoded,
  DecodeError,
  flag,
  list,
  number,
  or,
  record,
  schema,
  text,
} from "./decode";
import { sample } from "./history";
import { transfer } from "./transfers";

const replica = schema("Replica", {
  index: number,
  node: text,
  host: or(text, ""),
  live: flag,
  state: text,
  busy_count: or(number, 0),
  queued: or(number, 0),
  restarts: or(number, 0),
  attempts: or(number, 0),
  next_retry_in_s: or(number, null),
  last_error: or(text, ""),
  log_tail: or(text, ""),
  model_bytes: or(number, 0),
  loaded_bytes: or(number, 0),
  tokens_per_s: or(number, 0),
  resident_bytes: or(number, 0),
});

const pool = schema("Pool", {
  alias: text,
  model: text,
  generation: or(number, 0),
  is_replica: or(flag, true),
  batch: flag,
  batch_reason: or(text, ""),
  batch_size: or(number, 1),
  exact_resume: or(flag, false),
  replicas_live: number,
  replicas_total: number,
  queue_depth: or(number, 0),
  in_flight: or(number, 0),
  tokens_per_s: or(number, 0),
  replicas: list(replica),
});

const loadingNode = schema("LoadingNode", {
  node: text,
  phase: or(text, "loading"),
  loaded_bytes: or(number, 0),
  total_bytes: or(number, 0),
  bytes_per_s: or(number, 0),
  stalled: or(flag, false),
});

const loading = schema("Loading", {
  alias: text,
  elapsed_s: or(number, 0),
  eta_s: or(number, null),
  nodes: or(list(loadingNode), []),
});

const node = schema("NodeStatus", {
  id: text,
  label: or(text, ""),
  transport: or(text, "local"),
  state: or(text, "connecting"),
  reason: or(text, ""),
});

const cluster = schema("ClusterOverview", {
  id: text,
  label: or(text, ""),
  kind: or(text, "replica"),
  nodes: or(list(node), []),
  loading: or(list(loading), []),
  pools: or(list(pool), []),
});

const fleet = schema("Overview", {
  version: text,
  endpoint: text,
  clusters: list(cluster),
  history: or(list(sample), []), // the newest of each pool and each replica
  transfers: or(list(transfer), []), // of models, the newest first
  login: or(flag, false), // who is not logged in sees nothing of this
  keys: or(flag, false), // API keys exist: /v1 wants one
});

export type Replica = Decoded<typeof replica>;
export type Pool = Decoded<typeof pool>;
export type Loading = Decoded<typeof loading>;
export type LoadingNode = Decoded<typeof loadingNode>;
export type Node = Decoded<typeof node>;
export type Cluster = Decoded<typeof cluster>;
export type Fleet = Decoded<typeof fleet>;

// One event of GET /admin/stream.
export function decodeFleet(data: string): Fleet {
  const value: unknown = JSON.parse(data);
  return fleet(value, "");
}

export type Outcome = { ok: true } | { ok: false; status: number; message: string };

// The words of an RFC 9457 problem, of OpenAI's error form, or of the status line.
export async function problemOf(answer: Response): Promise<string> {
  const body = await answer.text();
  const inner = record({ message: or(text, "") });
  const problem = record({
    title: or(text, ""),
    detail: or(text, ""),
    error: or(inner, { message: "" }),
  });
  try {
    const said = problem(JSON.parse(body), "");
    const words = said.detail || said.error.message || said.title;
    if (words) return words;
  } catch (error) {
    if (!(error instanceof DecodeError || error instanceof SyntaxError)) throw error;
  }
  return `the server answered ${answer.status} ${answer.statusText}`.trim();
}

export async function send(method: string, path: string, body?: object): Promise<Outcome> {
  try {
    const answer = await request(path, {
      method,
      headers: { "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (answer.ok) return { ok: true };
    return { ok: false, status: answer.status, message: await problemOf(answer) };
  } catch {
    return { ok: false, status: 0, message: "The server did not answer. Is it still running?" };
  }
}

export interface LoadRequest {
  model: string;
  batch: boolean;
  alias?: string;
  context?: number;
}

// Waits for the outcome, since only the answer names each node's reason when no replica came up;
// the progress meanwhile comes by the stream.
export function loadModel(cluster: string, request: LoadRequest): Promise<Outcome> {
  const path = `/admin/clusters/${encodeURIComponent(cluster)}/load`;
  return send("POST", path, { ...request, wait: true });
}

export function reloadModel(
  cluster: string,
  request: { alias: string; model: string; batch: boolean },
): Promise<Outcome> {
  return send("POST", `/admin/clusters/${encodeURIComponent(cluster)}/reload`, request);
}

export const replicaActions = ["restart", "drain", "resume"] as const;
export type ReplicaAction = (typeof replicaActions)[number];

export function orderReplica(
  cluster: string,
  alias: string,
  node: string,
  action: ReplicaAction,
): Promise<Outcome> {
  const of = [cluster, "pools", alias, "replicas", node, action].map(encodeURIComponent);
  return send("POST", `/admin/clusters/${of.join("/")}`, {});
}

export function removeCluster(cluster: string): Promise<Outcome> {
  return send("DELETE", `/admin/clusters/${encodeURIComponent(cluster)}`);
}

export function unloadModel(cluster: string, alias: string): Promise<Outcome> {
  return send("POST", `/admin/clusters/${encodeURIComponent(cluster)}/unload`, { alias });
}

export function logIn(token: string): Promise<Outcome> {
  return send("POST", "/admin/login", { token });
}

export function logOut(): Promise<Outcome> {
  return send("POST", "/admin/logout", {});
}

export function syncModel(cluster: string, model: string, nodes: string[]): Promise<Outcome> {
  return send("POST", "/admin/models/sync", { cluster, model, nodes });
}

export function cancelTransfer(id: string): Promise<Outcome> {
  return send("DELETE", `/admin/transfers/${encodeURIComponent(id)}`);
}
