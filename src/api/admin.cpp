#include "api/admin.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/json.h"
#include "api/node_json.h"

namespace flotilla::api {
namespace {

// It becomes a word of a runner's command line, of which Linux takes 128 KiB.
constexpr std::size_t kChatTemplateMax = 120'000;

json::Object cluster_object(const ClusterSpec& cluster, Secrets secrets) {
  json::Array nodes;
  for (const NodeSpec& node : cluster.nodes)
    nodes.push_back(node_object(node, secrets == Secrets::Kept));
  return {{"id", cluster.id},
          {"label", cluster.label},
          {"kind", cluster.kind},
          {"nodes", std::move(nodes)},
          {"models_dir", cluster.models_dir},
          {"reload_on_restart", cluster.reload_on_restart}};
}

json::Object speculate_object(const SpeculateStatus& speculate) {
  const auto drafted = static_cast<double>(speculate.drafted_tokens);
  return {{"mode", speculate.mode},
          {"reason", speculate.reason.empty() ? json::Value() : json::Value(speculate.reason)},
          {"drafted_tokens", speculate.drafted_tokens},
          {"accepted_tokens", speculate.accepted_tokens},
          {"acceptance_rate",
           drafted > 0 ? json::Value(static_cast<double>(speculate.accepted_tokens) / drafted)
                       : json::Value()}};
}

json::Object replica_object(const ReplicaStatus& replica) {
  json::Object out{
      {"index", replica.index},
      {"node", replica.node},
      {"host", replica.host},
      {"live", replica.live},
      {"state", replica.state},
      {"busy_count", replica.busy_count},
      {"queued", replica.queued},
      {"restarts", replica.restarts},
      {"attempts", replica.attempts},
      {"next_retry_in_s",
       replica.next_retry_in_s ? json::Value(*replica.next_retry_in_s) : json::Value()},
      {"last_error", replica.last_error.empty() ? json::Value() : json::Value(replica.last_error)},
      {"log_tail", replica.log_tail.empty() ? json::Value() : json::Value(replica.log_tail)},
      {"engine", replica.engine.empty() ? json::Value() : json::Value(replica.engine)},
      {"model_bytes", replica.model_bytes},
      {"loaded_bytes", replica.loaded_bytes},
      {"tokens_per_s", replica.tokens_per_s},
      {"step_overhead", replica.step_overhead},
      {"resident_bytes", replica.resident_bytes},
      {"trimmed", replica.trimmed.empty() ? json::Value() : json::Value(replica.trimmed)},
      {"sessions_stored", replica.sessions_stored},
      {"session_store_bytes", replica.session_store_bytes},
      {"session_store_disk_bytes", replica.session_store_disk_bytes}};
  if (replica.speculate) out["speculate"] = speculate_object(*replica.speculate);
  return out;
}

json::Array replicas_array(const PoolStatus& pool) {
  json::Array out;
  for (const ReplicaStatus& replica : pool.replicas) out.push_back(replica_object(replica));
  return out;
}

json::Object pool_object(const PoolStatus& pool) {
  return {
      {"alias", pool.alias},
      {"model", pool.model},
      {"generation", pool.generation},
      {"is_replica", true},
      {"batch", pool.batch},
      {"batch_reason", pool.batch_reason.empty() ? json::Value() : json::Value(pool.batch_reason)},
      {"batch_size", pool.batch_size},
      {"exact_resume", pool.exact_resume},
      {"context_length", pool.context_length},
      {"quantization", pool.quantization},
      {"size_bytes", pool.size_bytes},
      {"replicas_live", pool.replicas_live()},
      {"replicas_total", pool.replicas.size()},
      {"queue_depth", pool.queue_depth},
      {"in_flight", pool.in_flight},
      {"tokens_per_s", pool.tokens_per_s},
      {"replicas", replicas_array(pool)}};
}

json::Array pools_array(const ClusterStatus& cluster) {
  json::Array out;
  for (const PoolStatus& pool : cluster.pools) out.push_back(pool_object(pool));
  return out;
}

json::Array loading_array(const ClusterStatus& cluster) {
  json::Array out;
  for (const LoadingStatus& loading : cluster.loading) {
    json::Array nodes;
    for (const NodeLoad& node : loading.nodes) {
      nodes.push_back(json::Object{{"node", node.node},
                                   {"phase", node.phase},
                                   {"loaded_bytes", node.loaded_bytes},
                                   {"total_bytes", node.total_bytes},
                                   {"bytes_per_s", node.bytes_per_s},
                                   {"stalled", node.stalled}});
    }
    out.push_back(
        json::Object{{"alias", loading.alias},
                     {"elapsed_s", loading.elapsed_s},
                     {"eta_s", loading.eta_s ? json::Value(*loading.eta_s) : json::Value()},
                     {"nodes", std::move(nodes)}});
  }
  return out;
}

json::Object node_status_object(const NodeStatus& node) {
  json::Object out{{"id", node.id},     {"label", node.label}, {"transport", node.transport},
                   {"host", node.host}, {"state", node.state}, {"reason", node.reason}};
  if (!node.version.empty()) {
    out["version"] = node.version;
    out["platform"] = node.platform;
    out["outdated"] = node.outdated;
    out["round_trip_ms"] = node.round_trip_ms;
  }
  return out;
}

json::Array texts_array(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

json::Object model_object(const ModelEntry& model) {
  // The made-up model is held to nothing; of foreign engines we know what they lack.
  const std::string& quantization = model.pool.quantization;
  const bool ours = !quantization.empty() && quantization != "none";
  const auto can = [&](std::string_view field) {
    return (ours || !model.pool.engines.empty()) &&
           std::ranges::find(model.pool.lacks, field) == model.pool.lacks.end();
  };
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "flotilla"},
          {"x_flotilla", json::Object{{"ready", model.ready},
                                      {"kind", "replica"},
                                      {"batch", model.pool.batch},
                                      {"replicas_live", model.pool.replicas_live()},
                                      {"replicas_total", model.pool.replicas.size()},
                                      {"context_length", model.pool.context_length},
                                      {"quantization", model.pool.quantization},
                                      {"size_bytes", model.pool.size_bytes},
                                      {"supports_tools", can("tools")},
                                      {"supports_json_schema", can("response_format")},
                                      {"supports_vision", false},
                                      {"engines", texts_array(model.pool.engines)},
                                      {"lacks", texts_array(model.pool.lacks)}}}};
}

std::string read_speculate(json::Reader& reader) {
  const auto given = reader.string("speculate");
  if (given && *given == "draft") {
    reader.refuse("speculate", "must be off, ngram or auto: there are no draft models yet");
    return "off";
  }
  return reader.choice("speculate", {"off", "ngram", "auto"}).value_or("off");
}

}  // namespace

Result<ClusterSpec> parse_cluster(std::string_view body, std::string_view id) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  ClusterSpec cluster;
  cluster.id = reader.string("id").value_or(std::string(id));
  if (cluster.id != id)
    reader.refuse("id", fmt::format("must be the path's, \"{}\", or be left out", id));
  if (!is_id(id)) fault.set("id", fmt::format("cluster id \"{}\" {}", id, kIdRule));
  cluster.label = reader.string("label", 200).value_or(cluster.id);
  cluster.kind = reader.string("kind").value_or("replica");
  if (cluster.kind != "replica") {
    reader.refuse(
        "kind",
        "must be \"replica\" (1 copy per node); Flotilla does not split a model over nodes");
  }
  cluster.models_dir = reader.string("models_dir", 4000).value_or("");
  cluster.reload_on_restart = reader.boolean("reload_on_restart").value_or(true);
  if (const json::Array* nodes = reader.array("nodes", kNodesMax)) {
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      const std::string path = json::item_path("nodes", i);
      const json::Object* node = (*nodes)[i].if_object();
      if (node == nullptr) {
        fault.set(path, fmt::format("{} must be an object {{id, transport, …}}", path));
        break;
      }
      cluster.nodes.push_back(read_node(json::Reader(*node, fault, path)));
      const auto same_id = [&](const NodeSpec& other) {
        return other.id == cluster.nodes.back().id;
      };
      if (std::ranges::count_if(cluster.nodes, same_id) > 1) {
        fault.set(path + ".id",
                  fmt::format("{}.id \"{}\" is there twice", path, cluster.nodes.back().id));
      }
    }
  }
  if (cluster.nodes.empty()) {
    fault.set("nodes", "nodes must have at least one node, e.g. [{\"id\": \"local-1\"}]");
  }
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return cluster;
}

std::string to_json(const ClusterSpec& cluster, Secrets secrets) {
  return json::to_text(cluster_object(cluster, secrets));
}

bool LoadSpec::same_settings(const LoadSpec& other) const {
  LoadSpec mine = *this;
  mine.wait = other.wait;
  mine.force = other.force;
  return to_json(mine) == to_json(other);
}

Result<LoadSpec> parse_load(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  LoadSpec load;
  load.model = reader.string("model", 4000).value_or("");
  if (load.model.empty()) reader.require("model", "a path: absolute, or relative to models_dir");
  load.batch = reader.boolean("batch").value_or(false);
  load.alias = reader.string("alias", 64).value_or("");
  load.context = static_cast<int>(reader.integer("context", 0, 100'000'000).value_or(0));
  load.batch_size = static_cast<int>(reader.integer("batch_size", 1, 64).value_or(0));
  load.kv_type = reader.choice("kv_type", {"f16", "q8_0"}).value_or("f16");
  load.gpu_layers = static_cast<int>(reader.integer("gpu_layers", 0, 100'000).value_or(0));
  load.threads = static_cast<int>(reader.integer("threads", 0, 1024).value_or(0));
  load.chat_template = reader.string("chat_template", kChatTemplateMax).value_or("");
  load.window = static_cast<int>(reader.integer("window", 0, 2'000'000'000).value_or(0));
  load.is_default = reader.boolean("default").value_or(false);
  load.force = reader.boolean("force").value_or(false);
  load.wait = reader.boolean("wait").value_or(true);
  if (const json::Array* aliases = reader.array("aliases", 64)) {
    for (const json::Value& alias : *aliases) {
      if (const auto* text = alias.if_string()) {
        load.aliases.emplace_back(*text);
      } else {
        fault.set("aliases", "aliases must be a list of strings");
      }
    }
  }
  if (reader.find("draft_model") != nullptr) {
    reader.refuse("draft_model",
                  "must be left out: drafts are made without a second model (speculate: ngram)");
  }
  load.speculate = read_speculate(reader);
  load.engine = reader.string("engine", 41).value_or("");
  load.share_prefixes = reader.boolean("share_prefixes");
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return load;
}

std::string to_json(const LoadSpec& load) {
  json::Array aliases;
  for (const std::string& alias : load.aliases) aliases.emplace_back(alias);
  json::Object out{
      {"model", load.model},        {"batch", load.batch},     {"alias", load.alias},
      {"context", load.context},    {"kv_type", load.kv_type}, {"gpu_layers", load.gpu_layers},
      {"threads", load.threads},    {"window", load.window},   {"aliases", std::move(aliases)},
      {"default", load.is_default}, {"force", load.force},     {"wait", load.wait}};
  if (load.share_prefixes) out["share_prefixes"] = *load.share_prefixes;
  if (!load.engine.empty()) out["engine"] = load.engine;
  if (load.batch_size != 0) out["batch_size"] = load.batch_size;
  if (!load.chat_template.empty()) out["chat_template"] = load.chat_template;
  if (load.speculate != "off") out["speculate"] = load.speculate;
  return json::to_text(out);
}

Result<UnloadSpec> parse_unload(std::string_view body) {
  UnloadSpec unload;
  if (body.empty()) return unload;
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  unload.alias = reader.string("alias", 64).value_or("");
  unload.force = reader.boolean("force").value_or(false);
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return unload;
}

Result<ReloadSpec> parse_reload(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  ReloadSpec reload;
  reload.alias = reader.string("alias", 64).value_or("");
  reload.model = reader.string("model", 4000);
  if (reload.model && reload.model->empty())
    reader.refuse("model", "must be a path, or be left out: the model stays");
  reload.batch = reader.boolean("batch");
  reload.force = reader.boolean("force").value_or(false);
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return reload;
}

std::string to_json(const ReloadSpec& reload) {
  json::Object out{{"alias", reload.alias}, {"force", reload.force}};
  if (reload.model) out["model"] = *reload.model;
  if (reload.batch) out["batch"] = *reload.batch;
  return json::to_text(out);
}

std::optional<ReplicaAction> parse_replica_action(std::string_view name) {
  for (const auto action : {ReplicaAction::Restart, ReplicaAction::Drain, ReplicaAction::Resume}) {
    if (name == to_string(action)) return action;
  }
  return std::nullopt;
}

const char* to_string(ReplicaAction action) {
  switch (action) {
    case ReplicaAction::Restart: return "restart";
    case ReplicaAction::Drain: return "drain";
    case ReplicaAction::Resume: return "resume";
  }
  return "";
}

std::string replica_action_json(std::string_view alias, ReplicaAction action,
                                const ReplicaStatus& replica) {
  return json::to_text(json::Object{{"alias", alias},
                                    {"node", replica.node},
                                    {"action", to_string(action)},
                                    {"replica", replica_object(replica)}});
}

int PoolStatus::replicas_live() const {
  return static_cast<int>(
      std::ranges::count_if(replicas, [](const ReplicaStatus& r) { return r.live; }));
}

std::string status_json(const ClusterStatus& cluster) {
  return json::to_text(json::Object{{"cluster", cluster.spec.id},
                                    {"loading", loading_array(cluster)},
                                    {"pools", pools_array(cluster)}});
}

std::string overview_json(std::string_view version, std::string_view endpoint,
                          const std::vector<ClusterStatus>& clusters) {
  json::Array list;
  for (const ClusterStatus& cluster : clusters) {
    json::Array nodes;
    for (const NodeStatus& node : cluster.nodes) {
      nodes.push_back(node_status_object(node));
    }
    list.push_back(json::Object{{"id", cluster.spec.id},
                                {"label", cluster.spec.label},
                                {"kind", cluster.spec.kind},
                                {"nodes", std::move(nodes)},
                                {"loading", loading_array(cluster)},
                                {"pools", pools_array(cluster)}});
  }
  return json::to_text(
      json::Object{{"version", version}, {"endpoint", endpoint}, {"clusters", std::move(list)}});
}

std::string clusters_json(const std::vector<ClusterSpec>& clusters) {
  json::Array list;
  for (const ClusterSpec& cluster : clusters)
    list.push_back(cluster_object(cluster, Secrets::Hidden));
  return json::to_text(json::Object{{"clusters", std::move(list)}});
}

std::string to_json(const LoadAnswer& answer) {
  const PoolStatus& pool = answer.pool;
  json::Object out{{"loaded", answer.loaded}, {"cluster", answer.cluster}, {"alias", pool.alias},
                   {"model", pool.model},     {"is_replica", true},        {"batch", pool.batch}};
  out["generation"] = pool.generation;
  if (!pool.batch_reason.empty()) out["batch_reason"] = pool.batch_reason;
  out["load_s"] = answer.load_s;
  out["replicas"] = replicas_array(pool);
  return json::to_text(out);
}

std::string models_json(const std::vector<ModelEntry>& models) {
  json::Array data;
  for (const ModelEntry& model : models) data.push_back(model_object(model));
  return json::to_text(json::Object{{"object", "list"}, {"data", std::move(data)}});
}

std::string model_json(const ModelEntry& model) { return json::to_text(model_object(model)); }

}  // namespace flotilla::api
