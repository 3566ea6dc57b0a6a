// Written by tools/api_types.py from src/api/openapi.json; do not edit.

// RFC 9457 problem JSON: every error of /admin.
export interface Problem {
  type: string;
  title: string;
  status: number;
  // What was wrong, with which value, and what would do.
  detail: string;
  // The field concerned.
  param?: string;
  code?: string;
}

// Every error of /v1 but /v1/messages.
export interface OpenAIError {
  error: {
    message: string;
    type: string;
    param: string | null;
    code: string | null;
  };
}

export interface AnthropicError {
  type: "error";
  error: {
    type: string;
    message: string;
  };
}

export interface NodeSpec {
  id: string;
  label?: string;
  transport?: "local" | "ssh" | "http";
  // ssh: a host's name, address or alias of the ssh config.
  host?: string;
  // ssh
  user?: string;
  // ssh
  port?: number;
  // ssh: where the program is there; searched for if left out.
  flotilla_path?: string;
  // http: the base URL of an OpenAI-compatible server.
  url?: string;
  // http: the model's name there.
  upstream_model?: string;
  // Instead of the cluster's.
  models_dir?: string;
  threads?: number;
  // Device numbers that the node's runner uses.
  devices?: number[];
  // Knobs, CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, GGML_*, OMP_*, HF_HOME.
  env?: Record<string, string>;
  // http: sent there; never returned.
  api_key?: string;
}

export interface NodeDeclared {
  id: string;
  label: string;
  transport: "local" | "ssh" | "http";
  // ssh: a host's name, address or alias of the ssh config.
  host?: string;
  // ssh
  user?: string;
  // ssh
  port?: number;
  // ssh: where the program is there; searched for if left out.
  flotilla_path?: string;
  // http: the base URL of an OpenAI-compatible server.
  url?: string;
  // http: the model's name there.
  upstream_model?: string;
  // Instead of the cluster's.
  models_dir?: string;
  threads?: number;
  // Device numbers that the node's runner uses.
  devices?: number[];
  // Knobs, CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, GGML_*, OMP_*, HF_HOME.
  env?: Record<string, string>;
}

export interface ClusterSpec {
  id?: string;
  label?: string;
  kind?: "replica";
  nodes: NodeSpec[];
  // Where the nodes have their models.
  models_dir?: string;
  reload_on_restart?: boolean;
}

export interface ClusterDeclared {
  id: string;
  label: string;
  kind: "replica";
  nodes: NodeDeclared[];
  models_dir: string;
  reload_on_restart: boolean;
}

export interface ClusterList {
  clusters: ClusterDeclared[];
}

export interface LoadSpec {
  // A path: absolute (the same on every node), or relative to models_dir.
  model: string;
  // Continuous batching.
  batch?: boolean;
  // The name that clients send; made from the file's name if left out.
  alias?: string;
  // More names.
  aliases?: string[];
  // Most tokens of one request; 0: the model's.
  context?: number;
  // Sequences together; RUNNER_BATCH_SIZE if left out.
  batch_size?: number;
  kv_type?: "f16" | "q8_0";
  gpu_layers?: number;
  // 0: cores / replicas on that machine.
  threads?: number;
  // Instead of the model's own.
  chat_template?: string;
  // KV cells of a runner; 0: as many as fit.
  window?: number;
  // Between API keys.
  share_prefixes?: boolean;
  // Answers unknown model names.
  default?: boolean;
  // Although preflight refuses.
  force?: boolean;
  // A template of flotilla.yaml's engines, instead of our runner.
  engine?: string;
  // false: answer 202 at once.
  wait?: boolean;
  // ngram: several tokens a pass where text repeats itself; answers stay the same. auto: the same. Where the replica cannot, it is off and the status says why.
  speculate?: "off" | "ngram" | "auto";
}

export interface UnloadSpec {
  // May be left out where the cluster has one pool.
  alias?: string;
  // Requests under way are cut.
  force?: boolean;
}

export interface ReloadSpec {
  alias?: string;
  // Stays if left out.
  model?: string;
  // Stays if left out.
  batch?: boolean;
  force?: boolean;
}

export interface Unloaded {
  unloaded: true;
  cluster: string;
  alias: string;
}

// What was asked for, as `flotilla export` writes it.
export interface Declared {
  clusters: ClusterDeclared[];
  pools: ({
    cluster: string;
    // A path: absolute (the same on every node), or relative to models_dir.
    model: string;
    // Continuous batching.
    batch: boolean;
    // The name that clients send; made from the file's name if left out.
    alias: string;
    // More names.
    aliases: string[];
    // Most tokens of one request; 0: the model's.
    context: number;
    // Sequences together; RUNNER_BATCH_SIZE if left out.
    batch_size?: number;
    kv_type: "f16" | "q8_0";
    gpu_layers: number;
    // 0: cores / replicas on that machine.
    threads: number;
    // Instead of the model's own.
    chat_template?: string;
    // KV cells of a runner; 0: as many as fit.
    window: number;
    // Between API keys.
    share_prefixes?: boolean;
    // Answers unknown model names.
    default: boolean;
    // Although preflight refuses.
    force: boolean;
    // A template of flotilla.yaml's engines, instead of our runner.
    engine?: string;
    // false: answer 202 at once.
    wait: boolean;
    // Left out: off.
    speculate?: "ngram" | "auto";
  })[];
  // By node.
  api_key_fingerprints: Record<string, string>;
}

// One runner of a pool on one node.
export interface Replica {
  index: number;
  node: string;
  host: string;
  live: boolean;
  // starting, loading, ready, draining, drained, down, waiting, waiting (node away), stopped.
  state: string;
  // Requests in it.
  busy_count: number;
  // Requests that wait for it alone.
  queued: number;
  restarts: number;
  // Of the restart under way.
  attempts: number;
  next_retry_in_s: number | null;
  last_error: string | null;
  // Its last words before it last ended.
  log_tail: string | null;
  // That is not ours: its template's name. Its loaded_bytes are estimated.
  engine: string | null;
  model_bytes: number;
  loaded_bytes: number;
  tokens_per_s: number;
  // Share of its steps that is not the forward pass.
  step_overhead: number;
  resident_bytes: number;
  // What the last look for memory gave back.
  trimmed: string | null;
  sessions_stored: number;
  session_store_bytes: number;
  session_store_disk_bytes: number;
  // If the load asked for it.
  speculate?: {
    mode: "off" | "ngram";
    // Why it is off.
    reason: string | null;
    // Guessed and computed since it started.
    drafted_tokens: number;
    // Of them, that were right.
    accepted_tokens: number;
    // Their share.
    acceptance_rate: number | null;
  };
}

export interface Pool {
  alias: string;
  model: string;
  generation: number;
  is_replica: true;
  // As it is, not as it was asked for.
  batch: boolean;
  // Why not.
  batch_reason: string | null;
  batch_size: number;
  // A continuation on another replica is bit-identical.
  exact_resume: boolean;
  context_length: number;
  quantization: string;
  size_bytes: number;
  replicas_live: number;
  replicas_total: number;
  queue_depth: number;
  in_flight: number;
  tokens_per_s: number;
  replicas: Replica[];
}

export interface LoadAnswer {
  // false: it goes on (wait=false).
  loaded: boolean;
  cluster: string;
  alias: string;
  model: string;
  is_replica: true;
  batch: boolean;
  generation: number;
  batch_reason?: string;
  load_s: number;
  replicas: Replica[];
}

export interface LoadingNode {
  node: string;
  phase: "starting" | "loading" | "ready" | "failed";
  loaded_bytes: number;
  total_bytes: number;
  bytes_per_s: number;
  stalled: boolean;
}

export interface Loading {
  alias: string;
  elapsed_s: number;
  eta_s: number | null;
  nodes: LoadingNode[];
}

export interface ClusterStatus {
  cluster: string;
  loading: Loading[];
  pools: Pool[];
}

export interface NodeStatus {
  id: string;
  label: string;
  transport: string;
  host: string;
  // up, connecting, down, down (version).
  state: string;
  reason: string;
  version?: string;
  platform?: string;
  outdated?: boolean;
  round_trip_ms?: number;
}

export interface ClusterOverview {
  id: string;
  label: string;
  kind: "replica";
  nodes: NodeStatus[];
  loading: Loading[];
  pools: Pool[];
}

// The newest step of a series.
export interface HistorySample {
  pool: string;
  // A replica's; null: the pool's own.
  node: string | null;
  unix_s: number;
  tokens_per_s: number | null;
  queue: number | null;
  in_flight: number | null;
  replicas_live: number | null;
  ttft_p50_ms: number | null;
  ttft_p99_ms: number | null;
  gap_p50_ms: number | null;
  gap_p99_ms: number | null;
  cached_share: number | null;
}

export interface HistorySeries {
  pool: string;
  // A replica's; null: the pool's own.
  node: string | null;
  unix_s: number[];
  tokens_per_s: (number | null)[];
  queue: (number | null)[];
  in_flight: (number | null)[];
  replicas_live: (number | null)[];
  ttft_p50_ms: (number | null)[];
  ttft_p99_ms: (number | null)[];
  gap_p50_ms: (number | null)[];
  gap_p99_ms: (number | null)[];
  cached_share: (number | null)[];
}

export interface History {
  range_s: number;
  step_s: number;
  pools: HistorySeries[];
}

// One event of /admin/stream.
export interface Overview {
  version: string;
  endpoint: string;
  clusters: ClusterOverview[];
  // An admin token is set.
  login: boolean;
  // API keys exist: /v1 wants one.
  keys: boolean;
  history: HistorySample[];
  // The last ones, the newest first.
  transfers: Transfer[];
}

export interface ReplicaActionAnswer {
  alias: string;
  node: string;
  action: "restart" | "drain" | "resume";
  replica: Replica;
}

export interface FoundModel {
  // Its path in models_dir.
  model: string;
  size_bytes: number;
  // Files of a split, or of a folder.
  parts: number;
  // config.json and *.safetensors, for engines that are not ours.
  folder: boolean;
  family: string;
  quantization: string;
  context_trained: number;
  // That have it.
  nodes: string[];
  // That lack it.
  missing: string[];
  // That have another file of that name.
  differing: string[];
  // Why it cannot be loaded.
  error?: string;
}

export interface NodeModels {
  node: string;
  models_dir: string;
  truncated: boolean;
  // Why it has none to show.
  error: string;
}

export interface ClusterModels {
  cluster: string;
  models: FoundModel[];
  nodes: NodeModels[];
}

export interface AllModels {
  clusters: ClusterModels[];
}

export interface PreflightNode {
  node: string;
  model_present: boolean;
  model_bytes: number;
  family: string;
  quantization: string;
  // What the numbers are for.
  context: number;
  context_trained: number;
  weights_bytes: number;
  kv_bytes: number;
  buffer_bytes: number;
  need_bytes: number;
  // Of the devices where the node names some, else of the machine.
  free_bytes: number;
  on_devices: boolean;
  // What would make it better.
  advice: string;
  // The bytes are: an engine that is not ours takes its own.
  estimated: boolean;
  // Of this load on the machine: they share what is free.
  replicas_here: number;
  reachable: boolean;
  version: string;
  outdated: boolean;
  // SHA-256; empty: not known yet.
  hash: string;
  // How its file differs from the other nodes'.
  differs: string;
  disk_free_bytes: number;
  fits: boolean;
  verdict: string;
  // What would do.
  fix: string;
}

export interface Preflight {
  cluster: string;
  model: string;
  batch: boolean;
  width: number;
  fits: boolean;
  limiting_node: string | null;
  nodes: PreflightNode[];
}

export interface SyncSpec {
  cluster: string;
  // Relative to models_dir, as one of the nodes has it.
  model: string;
  // To these only; else to all that lack it.
  nodes?: string[];
  // The node whose file it is; else one whose file most of them have.
  from?: string;
}

export interface TransferNode {
  node: string;
  state: "waiting" | "copying" | "done" | "failed" | "cancelled";
  // The one under way.
  file: string;
  done_bytes: number;
  total_bytes: number;
  // That were there from an earlier try.
  resumed_bytes: number;
  bytes_per_s: number;
  eta_s: number | null;
  error: string;
}

export interface Transfer {
  id: string;
  cluster: string;
  model: string;
  // The node that it is copied from.
  source: string;
  state: "running" | "done" | "failed" | "cancelled";
  // Of the model.
  total_bytes: number;
  began_unix_ms: number;
  took_s: number;
  nodes: TransferNode[];
}

export interface TransferList {
  transfers: Transfer[];
}

export interface ReplicaMemory {
  alias: string;
  node: string;
  rss_bytes: number;
}

export interface Gpu {
  index: number;
  name: string;
  memory_total_bytes: number;
  memory_used_bytes: number;
  busy_percent: number | null;
  temperature_c: number | null;
  power_w: number | null;
}

export interface NodeTelemetry {
  node: string;
  label: string;
  transport: string;
  host: string;
  state: string;
  reason: string;
  version: string;
  platform: string;
  outdated: boolean;
  round_trip_ms: number;
  memory_total_bytes: number;
  memory_available_bytes: number;
  // Busy cores.
  cpu_load: number;
  cores: number;
  replicas: ReplicaMemory[];
  // As the platform's own tool tells; none without it.
  gpus: Gpu[];
}

export interface NodeList {
  nodes: NodeTelemetry[];
}

export interface NodeTest {
  node: string;
  reachable: true;
  // Of its flotilla; empty: it is none.
  version: string;
  outdated: boolean;
  // What a server elsewhere calls its model.
  model: string;
  // Of a server elsewhere, if it says so.
  engine: string;
  took_ms: number;
}

export interface TrustOrder {
  // One that the machine shows: SHA256:… Without it nothing is stored.
  fingerprint?: string;
}

export interface TrustAnswer {
  node: string;
  host: string;
  fingerprints: string[];
  // The known_hosts of the server's user.
  file: string;
  known: boolean;
  // known_hosts has another one.
  changed: boolean;
}

export interface BootstrapAnswer {
  node: string;
  platform: string;
  path: string;
  version: string;
  restarted: boolean;
  up: boolean;
}

export interface Finding {
  cluster: string;
  node: string;
  check: string;
  level: "ok" | "warning" | "failure";
  detail: string;
  fix: string;
}

export interface Doctor {
  // No failure.
  ok: boolean;
  findings: Finding[];
}

export interface Request {
  id: string;
  model: string;
  // The API key's id; without one the peer's address, with `operator at ` before it where the admin token or a log-in let it in.
  key: string;
  // The client's address.
  peer: string;
  // arrived, queued, dispatched, answering, ended …
  phase: string;
  node: string | null;
  stream: boolean;
  arrived_unix_ms: number;
  queued_ms: number;
  ttft_ms: number | null;
  took_ms: number;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  prefill_chunks: number;
  gaps: number;
  gap_max_ms: number;
  retries: number;
  // Another replica went on with it.
  resumed: boolean;
  status: number | null;
  end: string | null;
}

export interface RequestList {
  requests: Request[];
}

export interface RequestMoment {
  at_ms: number;
  what: string;
  detail?: string;
}

export interface RequestTimeline {
  id: string;
  model: string;
  // The API key's id; without one the peer's address, with `operator at ` before it where the admin token or a log-in let it in.
  key: string;
  // The client's address. In what the operator sees, below /admin.
  peer?: string;
  // arrived, queued, dispatched, answering, ended …
  phase: string;
  node: string | null;
  stream: boolean;
  arrived_unix_ms: number;
  queued_ms: number;
  ttft_ms: number | null;
  took_ms: number;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  prefill_chunks: number;
  gaps: number;
  gap_max_ms: number;
  retries: number;
  // Another replica went on with it.
  resumed: boolean;
  status: number | null;
  end: string | null;
  timeline: RequestMoment[];
}

export interface Cancelled {
  cancelled: true;
}

export interface Session {
  // A hash.
  id: string;
  alias: string;
  // Its home.
  node: string;
  tokens: number;
  idle_s: number;
  // By its client, not by its messages.
  named: boolean;
}

export interface SessionList {
  sessions: Session[];
}

export interface KeySpec {
  name: string;
  // Aliases that it may ask; empty: all.
  models?: string[];
  // In the fair queue.
  weight?: number;
  // 0: no bound.
  requests_per_min?: number;
  // 0: no bound.
  tokens_per_min?: number;
  // Answers at once: a request counts n for each of its prompts, one for vectors as many of its inputs as there is room for. 0: no bound.
  max_in_flight?: number;
  // Keys of one group share prefixes.
  cache_group?: string;
  // 0: never.
  expires_unix_s?: number;
}

export interface Key {
  name: string;
  // Aliases that it may ask; empty: all.
  models: string[];
  // In the fair queue.
  weight: number;
  // 0: no bound.
  requests_per_min: number;
  // 0: no bound.
  tokens_per_min: number;
  // Answers at once: a request counts n for each of its prompts, one for vectors as many of its inputs as there is room for. 0: no bound.
  max_in_flight: number;
  // Keys of one group share prefixes.
  cache_group: string;
  // 0: never.
  expires_unix_s: number;
  id: string;
  created_unix_s: number;
  in_flight: number;
}

export interface NewKey {
  name: string;
  // Aliases that it may ask; empty: all.
  models: string[];
  // In the fair queue.
  weight: number;
  // 0: no bound.
  requests_per_min: number;
  // 0: no bound.
  tokens_per_min: number;
  // Answers at once: a request counts n for each of its prompts, one for vectors as many of its inputs as there is room for. 0: no bound.
  max_in_flight: number;
  // Keys of one group share prefixes.
  cache_group: string;
  // 0: never.
  expires_unix_s: number;
  id: string;
  created_unix_s: number;
  in_flight: number;
  // Shown in this answer only.
  secret: string;
}

export interface KeyList {
  keys: Key[];
}

export interface UsageRow {
  // by=key; empty: without one.
  key?: string;
  // by=key
  name?: string;
  // by=day: 2026-11-30, UTC.
  day?: string;
  requests: number;
  prompt_tokens: number;
  cached_tokens: number;
  generated_tokens: number;
}

export interface Usage {
  by: "key" | "day";
  rows: UsageRow[];
}

export interface Setting {
  name: string;
  value: number;
  default: number;
  min: number;
  max: number;
  source: "flag" | "environment" | "stored" | "file" | "default";
  // When a change takes effect.
  applies: string;
  about: string;
}

export interface Settings {
  settings: Setting[];
}

// By name; null takes the stored value back.
export type SettingChanges = Record<string, number | null>;

export interface Event {
  at_unix_ms: number;
  who: string;
  action: string;
  status: number;
  detail: string | null;
}

export interface EventList {
  events: Event[];
}

export interface Login {
  token: string;
}

export interface BenchSpec {
  // May be left out where one is loaded.
  model?: string;
  requests?: number;
  max_tokens?: number;
}

export interface BenchStream {
  number: number;
  node: string;
  first_ms: number;
  last_ms: number;
  tokens: number;
  whole: boolean;
  error?: string;
}

export interface BenchReport {
  model: string;
  requests: number;
  max_tokens: number;
  took_ms: number;
  // Whole answers.
  whole: number;
  tokens: number;
  tokens_per_s: number;
  ttft_p50_ms: number;
  ttft_p99_ms: number;
  streams: BenchStream[];
}

// Who answered, and how fast.
export interface ServedBy {
  node: string;
  replica: string;
  queued_ms: number;
  ttft_ms: number;
  tokens_per_s: number;
  resumed: boolean;
  // Of the prompt. 0 too where an engine's cache may show what others asked.
  cached_tokens: number;
}

export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  // Absent where an engine tells none, or its cache may show what others asked.
  prompt_tokens_details?: {
    cached_tokens: number;
  };
}

export interface Model {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
  x_flotilla: {
    ready: boolean;
    kind: "replica";
    batch: boolean;
    replicas_live: number;
    replicas_total: number;
    context_length: number;
    quantization: string;
    size_bytes: number;
    supports_tools: boolean;
    supports_json_schema: boolean;
    supports_vision: boolean;
    // Engines among its replicas that are not ours; other: not known by name.
    engines: string[];
    // Fields of requests that they do not know, and that are refused.
    lacks: string[];
  };
}

export interface ModelList {
  object: "list";
  data: Model[];
}

export interface ToolCall {
  id: string;
  type: "function";
  function: {
    name: string;
    // JSON.
    arguments: string;
  };
}

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content?: string | Record<string, unknown>[] | null;
  name?: string;
  reasoning_content?: string | null;
  tool_calls?: Record<string, unknown>[] | null;
  tool_call_id?: string;
}

// OpenAI's, and more. Unknown fields are accepted.
export interface ChatRequest {
  // The alias of a loaded model.
  model: string;
  messages: ChatMessage[];
  temperature?: number | null;
  top_p?: number | null;
  // -1, 0: off.
  top_k?: number | null;
  min_p?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  repetition_penalty?: number | null;
  seed?: number | null;
  // By token id.
  logit_bias?: Record<string, number | null> | null;
  ignore_eos?: boolean | null;
  stop?: string | string[] | null;
  max_tokens?: number | null;
  n?: number | null;
  stream?: boolean | null;
  stream_options?: {
    include_usage?: boolean | null;
  } | null;
  user?: string | null;
  // Names the conversation; so does X-Session-Id.
  session_id?: string | null;
  timeout_s?: number | null;
  max_completion_tokens?: number | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  tools?: Record<string, unknown>[] | null;
  tool_choice?: "none" | "auto" | "required" | Record<string, unknown> | null;
  parallel_tool_calls?: boolean | null;
  // text, json_object, json_schema.
  response_format?: Record<string, unknown> | null;
  // GBNF.
  grammar?: string | null;
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
  enable_thinking?: boolean | null;
  chat_template_kwargs?: Record<string, unknown> | null;
  continue_final_message?: boolean | null;
  prompt_cache_key?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface ChatAnswer {
  id: string;
  object: "chat.completion";
  created: number;
  // As the client named it.
  model: string;
  choices: ({
    index: number;
    message: {
      role: "assistant";
      content: string | null;
      reasoning_content?: string;
      refusal?: string | null;
      tool_calls?: ToolCall[];
    };
    logprobs?: Record<string, unknown> | null;
    finish_reason: string | null;
    // The stop string.
    stop_reason?: string;
  })[];
  usage?: ChatUsage;
  system_fingerprint?: string;
  x_flotilla?: ServedBy;
}

// One event of a stream; the last is `[DONE]`. Comments (`: keep-alive`) come between.
export interface ChatChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: ({
    index: number;
    delta: Record<string, unknown>;
    logprobs?: Record<string, unknown> | null;
    finish_reason: string | null;
    stop_reason?: string;
  })[];
  usage?: ChatUsage | null;
  x_flotilla?: ServedBy;
}

export interface CompletionRequest {
  model: string;
  prompt: string | (string | number | number[])[];
  temperature?: number | null;
  top_p?: number | null;
  // -1, 0: off.
  top_k?: number | null;
  min_p?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  repetition_penalty?: number | null;
  seed?: number | null;
  // By token id.
  logit_bias?: Record<string, number | null> | null;
  ignore_eos?: boolean | null;
  stop?: string | string[] | null;
  max_tokens?: number | null;
  n?: number | null;
  stream?: boolean | null;
  stream_options?: {
    include_usage?: boolean | null;
  } | null;
  user?: string | null;
  // Names the conversation; so does X-Session-Id.
  session_id?: string | null;
  timeout_s?: number | null;
  echo?: boolean | null;
  logprobs?: number | null;
  best_of?: number | null;
  suffix?: string | null;
}

export interface CompletionAnswer {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: ({
    index: number;
    text: string;
    logprobs?: Record<string, unknown> | null;
    finish_reason: string | null;
    stop_reason?: string;
  })[];
  usage?: ChatUsage;
  system_fingerprint?: string;
  x_flotilla?: ServedBy;
}

export interface ResponsesRequest {
  model: string;
  // An item_reference stands for the item of a stored response.
  input: string | Record<string, unknown>[];
  instructions?: string | null;
  previous_response_id?: string | null;
  store?: boolean | null;
  stream?: boolean | null;
  tools?: Record<string, unknown>[] | null;
  // A word, a function by its name, or allowed_tools with mode and tools.
  tool_choice?: string | Record<string, unknown> | null;
  parallel_tool_calls?: boolean | null;
  text?: Record<string, unknown> | null;
  reasoning?: Record<string, unknown> | null;
  include?: string[] | null;
  max_output_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  top_logprobs?: number | null;
  metadata?: Record<string, unknown> | null;
}

// OpenAI's response object.
export interface ResponsesAnswer {
  id: string;
  object: "response";
  created_at: number;
  status: string;
  model: string;
  error?: Record<string, unknown> | null;
  incomplete_details?: Record<string, unknown> | null;
  output: Record<string, unknown>[];
  usage?: Record<string, unknown> | null;
}

export interface ResponsesItems {
  object: "list";
  data: Record<string, unknown>[];
  first_id?: string | null;
  last_id?: string | null;
  has_more?: boolean;
}

export interface ResponsesDeleted {
  id: string;
  object?: string;
  deleted: true;
}

// Anthropic's.
export interface MessagesRequest {
  model: string;
  max_tokens: number;
  messages: ({
    role: "user" | "assistant" | "system";
    content: string | Record<string, unknown>[];
  })[];
  system?: string | Record<string, unknown>[] | null;
  tools?: Record<string, unknown>[] | null;
  tool_choice?: Record<string, unknown> | null;
  stop_sequences?: string[] | null;
  stream?: boolean | null;
  thinking?: Record<string, unknown> | null;
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  metadata?: Record<string, unknown> | null;
}

export interface MessagesAnswer {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: ({
    type: "text" | "thinking" | "tool_use";
  })[];
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: {
    input_tokens: number;
    output_tokens: number;
    cache_read_input_tokens?: number;
    cache_creation_input_tokens?: number;
  };
}

export interface CountRequest {
  model: string;
  messages: Record<string, unknown>[];
  system?: string | Record<string, unknown>[] | null;
  tools?: Record<string, unknown>[] | null;
}

export interface CountAnswer {
  input_tokens: number;
}

export interface EmbeddingsRequest {
  model: string;
  input: string | unknown[];
  encoding_format?: string;
  dimensions?: number | null;
  user?: string | null;
}

export interface EmbeddingsAnswer {
  object: "list";
  data: Record<string, unknown>[];
  model?: string;
  usage?: Record<string, unknown>;
  x_flotilla?: ServedBy;
}

// One of content (llama-server's), prompt (vLLM's) and messages.
export interface TokenizeRequest {
  // May be left out where one is loaded.
  model?: string;
  content?: string;
  prompt?: string;
  messages?: Record<string, unknown>[];
  add_special?: boolean;
  add_special_tokens?: boolean;
  parse_special?: boolean;
  with_pieces?: boolean;
  return_token_strs?: boolean;
}

export interface TokenizeAnswer {
  model: string;
  tokens: number[];
  count: number;
  max_model_len: number;
  token_strs?: string[];
}

export interface DetokenizeRequest {
  model?: string;
  tokens: number[];
}

export interface DetokenizeAnswer {
  content: string;
  prompt: string;
}

export interface Health {
  status: "idle" | "ok" | "degraded";
}

export interface Ready {
  ready: boolean;
}

export interface ServerCard {
  name: "flotilla";
  version: string;
  api: string[];
  auth: "none" | "bearer";
  limits: {
    body_max_bytes: number;
    queue_max: number;
    request_deadline_s: number;
    choices_max: number;
  };
}

export interface Schemas {
  Problem: Problem;
  OpenAIError: OpenAIError;
  AnthropicError: AnthropicError;
  NodeSpec: NodeSpec;
  NodeDeclared: NodeDeclared;
  ClusterSpec: ClusterSpec;
  ClusterDeclared: ClusterDeclared;
  ClusterList: ClusterList;
  LoadSpec: LoadSpec;
  UnloadSpec: UnloadSpec;
  ReloadSpec: ReloadSpec;
  Unloaded: Unloaded;
  Declared: Declared;
  Replica: Replica;
  Pool: Pool;
  LoadAnswer: LoadAnswer;
  LoadingNode: LoadingNode;
  Loading: Loading;
  ClusterStatus: ClusterStatus;
  NodeStatus: NodeStatus;
  ClusterOverview: ClusterOverview;
  HistorySample: HistorySample;
  HistorySeries: HistorySeries;
  History: History;
  Overview: Overview;
  ReplicaActionAnswer: ReplicaActionAnswer;
  FoundModel: FoundModel;
  NodeModels: NodeModels;
  ClusterModels: ClusterModels;
  AllModels: AllModels;
  PreflightNode: PreflightNode;
  Preflight: Preflight;
  SyncSpec: SyncSpec;
  TransferNode: TransferNode;
  Transfer: Transfer;
  TransferList: TransferList;
  ReplicaMemory: ReplicaMemory;
  Gpu: Gpu;
  NodeTelemetry: NodeTelemetry;
  NodeList: NodeList;
  NodeTest: NodeTest;
  TrustOrder: TrustOrder;
  TrustAnswer: TrustAnswer;
  BootstrapAnswer: BootstrapAnswer;
  Finding: Finding;
  Doctor: Doctor;
  Request: Request;
  RequestList: RequestList;
  RequestMoment: RequestMoment;
  RequestTimeline: RequestTimeline;
  Cancelled: Cancelled;
  Session: Session;
  SessionList: SessionList;
  KeySpec: KeySpec;
  Key: Key;
  NewKey: NewKey;
  KeyList: KeyList;
  UsageRow: UsageRow;
  Usage: Usage;
  Setting: Setting;
  Settings: Settings;
  SettingChanges: SettingChanges;
  Event: Event;
  EventList: EventList;
  Login: Login;
  BenchSpec: BenchSpec;
  BenchStream: BenchStream;
  BenchReport: BenchReport;
  ServedBy: ServedBy;
  ChatUsage: ChatUsage;
  Model: Model;
  ModelList: ModelList;
  ToolCall: ToolCall;
  ChatMessage: ChatMessage;
  ChatRequest: ChatRequest;
  ChatAnswer: ChatAnswer;
  ChatChunk: ChatChunk;
  CompletionRequest: CompletionRequest;
  CompletionAnswer: CompletionAnswer;
  ResponsesRequest: ResponsesRequest;
  ResponsesAnswer: ResponsesAnswer;
  ResponsesItems: ResponsesItems;
  ResponsesDeleted: ResponsesDeleted;
  MessagesRequest: MessagesRequest;
  MessagesAnswer: MessagesAnswer;
  CountRequest: CountRequest;
  CountAnswer: CountAnswer;
  EmbeddingsRequest: EmbeddingsRequest;
  EmbeddingsAnswer: EmbeddingsAnswer;
  TokenizeRequest: TokenizeRequest;
  TokenizeAnswer: TokenizeAnswer;
  DetokenizeRequest: DetokenizeRequest;
  DetokenizeAnswer: DetokenizeAnswer;
  Health: Health;
  Ready: Ready;
  ServerCard: ServerCard;
}
