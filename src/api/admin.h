#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_spec.h"
#include "base/result.h"

// Bodies of /admin as structs. Unknown fields are refused by name; every error says which field,
// which value and what would do.
namespace flotilla::api {

struct ClusterSpec {
  std::string id;
  std::string label;
  std::string kind = "replica";
  std::vector<NodeSpec> nodes;
  std::string models_dir;
  bool reload_on_restart = true;

  bool operator==(const ClusterSpec&) const = default;
};

// `id` is the path's; a body that names another is refused.
Result<ClusterSpec> parse_cluster(std::string_view body, std::string_view id);
enum class Secrets { Hidden, Kept };  // Kept: for the store only
std::string to_json(const ClusterSpec& cluster, Secrets secrets);

// Loads the made-up model of `flotilla runner --synthetic`: tests, dry runs, measurements.
inline constexpr std::string_view kSyntheticModel = "synthetic";

struct LoadSpec {
  std::string model;
  bool batch = false;
  std::string alias;   // empty = from the model's name
  int context = 0;     // 0 = what the model was trained for
  int batch_size = 0;  // 0 = RUNNER_BATCH_SIZE
  std::string kv_type = "f16";
  int gpu_layers = 0;
  int threads = 0;
  std::string chat_template;
  int window = 0;
  std::vector<std::string> aliases;
  bool is_default = false;
  bool force = false;
  bool wait = true;
  std::optional<bool> share_prefixes;  // between API keys; unset: no
  std::string engine;                  // a template of flotilla.yaml; empty = as the model says
  std::string speculate = "off";       // ngram: where it changes no answer; auto: the same

  // Same settings: loading again changes nothing. How the load was asked for does not count.
  bool same_settings(const LoadSpec& other) const;
};

Result<LoadSpec> parse_load(std::string_view body);
std::string to_json(const LoadSpec& load);

// Without a field: as it is.
struct ReloadSpec {
  std::string alias;  // empty = the cluster's only pool
  std::optional<std::string> model;
  std::optional<bool> batch;
  bool force = false;
};
Result<ReloadSpec> parse_reload(std::string_view body);
std::string to_json(const ReloadSpec& reload);

struct UnloadSpec {
  std::string alias;  // empty = the cluster's only pool
  bool force = false;
};
Result<UnloadSpec> parse_unload(std::string_view body);

// What may be asked of one replica.
enum class ReplicaAction { Restart, Drain, Resume };
std::optional<ReplicaAction> parse_replica_action(std::string_view name);
const char* to_string(ReplicaAction action);

// How a replica drafts tokens.
struct SpeculateStatus {
  std::string mode;    // ngram, or off
  std::string reason;  // why it is off
  std::int64_t drafted_tokens = 0;
  std::int64_t accepted_tokens = 0;
};

struct ReplicaStatus {
  int index = 0;
  std::string node;
  std::string host;
  bool live = false;
  std::string state;
  int busy_count = 0;
  int queued = 0;
  int restarts = 0;
  int attempts = 0;
  std::optional<double> next_retry_in_s;
  std::string last_error;
  std::string log_tail;  // its last words before it last ended
  std::string engine;    // that is not ours: its template's name; loaded_bytes are then estimated
  std::int64_t model_bytes = 0;
  std::int64_t loaded_bytes = 0;
  double tokens_per_s = 0;
  double step_overhead = 0;  // share of its steps that is not the forward pass
  std::int64_t resident_bytes = 0;
  std::string trimmed;      // what the last look for memory gave back (BG_CLEAR_CACHE_EVERY)
  int sessions_stored = 0;  // conversations that do not compute and keep their cells
  std::int64_t session_store_bytes = 0;
  std::int64_t session_store_disk_bytes = 0;
  std::optional<SpeculateStatus> speculate;  // if it was asked for
};

struct PoolStatus {
  std::string alias;
  std::string model;
  std::int64_t generation = 0;
  bool batch = false;
  std::string batch_reason;
  int batch_size = 1;
  bool exact_resume = false;
  int context_length = 0;
  std::string quantization;
  std::int64_t size_bytes = 0;
  int queue_depth = 0;
  int in_flight = 0;
  double tokens_per_s = 0;
  std::vector<std::string> engines;  // that are not ours and serve
  std::vector<std::string> lacks;    // fields of requests that they do not know
  std::vector<ReplicaStatus> replicas;

  int replicas_live() const;
};

struct NodeLoad {
  std::string node;
  std::string phase;  // starting, loading, ready, failed
  std::int64_t loaded_bytes = 0;
  std::int64_t total_bytes = 0;
  double bytes_per_s = 0;
  bool stalled = false;
};

struct LoadingStatus {
  std::string alias;
  double elapsed_s = 0;
  std::optional<double> eta_s;
  std::vector<NodeLoad> nodes;
};

struct NodeStatus {
  std::string id;
  std::string label;
  std::string transport;
  std::string state;  // up, connecting, down, down (version)
  std::string reason;
  std::string host;
  std::string version;  // of its flotilla; empty while it is not up, and for an http node
  std::string platform;
  bool outdated = false;  // another version than the gateway's, which speaks the same protocol
  double round_trip_ms = 0;
};

struct ClusterStatus {
  ClusterSpec spec;
  std::vector<NodeStatus> nodes;
  std::vector<LoadingStatus> loading;
  std::vector<PoolStatus> pools;
};

// GET …/status
std::string status_json(const ClusterStatus& cluster);
// One event of GET /admin/stream.
std::string overview_json(std::string_view version, std::string_view endpoint,
                          const std::vector<ClusterStatus>& clusters);
// GET /admin/clusters
std::string clusters_json(const std::vector<ClusterSpec>& clusters);

struct LoadAnswer {
  std::string cluster;
  double load_s = 0;
  bool loaded = true;
  PoolStatus pool;
};
std::string to_json(const LoadAnswer& answer);

// What became of a replica that was told to do something.
std::string replica_action_json(std::string_view alias, ReplicaAction action,
                                const ReplicaStatus& replica);

// GET /v1/models, and one of them.
struct ModelEntry {
  std::string id;
  std::int64_t created = 0;
  bool ready = true;
  PoolStatus pool;
};
std::string models_json(const std::vector<ModelEntry>& models);
std::string model_json(const ModelEntry& model);

}  // namespace flotilla::api
