#include "api/read_answers.h"

#include "api/error_body.h"
#include "api/json.h"

namespace flotilla::api {
namespace {

const json::Object kNothing;

const json::Object& as_object(const json::Value& value) {
  const json::Object* object = value.if_object();
  return object != nullptr ? *object : kNothing;
}

const json::Array& array_of(const json::Object& object, std::string_view name) {
  static const json::Array nothing;
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_array() ? value->get_array() : nothing;
}

const json::Object& object_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr ? as_object(*value) : kNothing;
}

void read(const json::Object& object, std::string_view name, std::string& out) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  if (value != nullptr && value->is_string()) out = std::string(value->get_string());
}

void read(const json::Object& object, std::string_view name, bool& out) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  if (value != nullptr && value->is_bool()) out = value->get_bool();
}

void read(const json::Object& object, std::string_view name, double& out) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  if (value != nullptr && value->is_number()) out = value->to_number<double>();
}

void read(const json::Object& object, std::string_view name, std::optional<double>& out) {
  double number = -1;
  read(object, name, number);
  if (number >= 0) out = number;
}

template <std::integral T>
void read(const json::Object& object, std::string_view name, T& out) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_number()) return;
  boost::json::error_code ec;
  const T number = value->to_number<T>(ec);
  if (!ec) out = number;
}

ReplicaStatus replica_status(const json::Object& object) {
  ReplicaStatus replica;
  read(object, "index", replica.index);
  read(object, "node", replica.node);
  read(object, "host", replica.host);
  read(object, "live", replica.live);
  read(object, "state", replica.state);
  read(object, "busy_count", replica.busy_count);
  read(object, "queued", replica.queued);
  read(object, "restarts", replica.restarts);
  read(object, "attempts", replica.attempts);
  read(object, "next_retry_in_s", replica.next_retry_in_s);
  read(object, "last_error", replica.last_error);
  read(object, "log_tail", replica.log_tail);
  read(object, "model_bytes", replica.model_bytes);
  read(object, "loaded_bytes", replica.loaded_bytes);
  read(object, "tokens_per_s", replica.tokens_per_s);
  read(object, "step_overhead", replica.step_overhead);
  read(object, "resident_bytes", replica.resident_bytes);
  read(object, "trimmed", replica.trimmed);
  read(object, "sessions_stored", replica.sessions_stored);
  read(object, "session_store_bytes", replica.session_store_bytes);
  read(object, "session_store_disk_bytes", replica.session_store_disk_bytes);
  return replica;
}

PoolStatus pool_status(const json::Object& object) {
  PoolStatus pool;
  read(object, "alias", pool.alias);
  read(object, "model", pool.model);
  read(object, "generation", pool.generation);
  read(object, "batch", pool.batch);
  read(object, "batch_reason", pool.batch_reason);
  read(object, "batch_size", pool.batch_size);
  read(object, "exact_resume", pool.exact_resume);
  read(object, "context_length", pool.context_length);
  read(object, "quantization", pool.quantization);
  read(object, "size_bytes", pool.size_bytes);
  read(object, "queue_depth", pool.queue_depth);
  read(object, "in_flight", pool.in_flight);
  read(object, "tokens_per_s", pool.tokens_per_s);
  for (const json::Value& replica : array_of(object, "replicas")) {
    pool.replicas.push_back(replica_status(as_object(replica)));
  }
  return pool;
}

LoadingStatus loading_status(const json::Object& object) {
  LoadingStatus loading;
  read(object, "alias", loading.alias);
  read(object, "elapsed_s", loading.elapsed_s);
  read(object, "eta_s", loading.eta_s);
  for (const json::Value& value : array_of(object, "nodes")) {
    const json::Object& from = as_object(value);
    NodeLoad node;
    read(from, "node", node.node);
    read(from, "phase", node.phase);
    read(from, "loaded_bytes", node.loaded_bytes);
    read(from, "total_bytes", node.total_bytes);
    read(from, "bytes_per_s", node.bytes_per_s);
    read(from, "stalled", node.stalled);
    loading.nodes.push_back(std::move(node));
  }
  return loading;
}

}  // namespace

Result<ChatEvent> read_chat_event(std::string_view data) {
  const auto object = json::parse_object(data);
  if (!object) return fail(Code::BadGateway, "a chunk is not JSON: " + object.error().message);
  if (object->contains("error")) return fail(parse_error_body(500, data));
  ChatEvent event;
  for (const json::Value& choice : array_of(*object, "choices")) {
    const json::Object& delta = object_of(as_object(choice), "delta");
    std::string text;
    read(delta, "content", text);
    if (text.empty()) read(delta, "reasoning_content", text);
    event.text += text;
    read(as_object(choice), "finish_reason", event.finish_reason);
  }
  read(object_of(*object, "x_flotilla"), "node", event.node);
  const json::Object& usage = object_of(*object, "usage");
  event.has_usage = usage.contains("completion_tokens");
  read(usage, "prompt_tokens", event.usage.prompt_tokens);
  read(usage, "completion_tokens", event.usage.completion_tokens);
  read(object_of(usage, "prompt_tokens_details"), "cached_tokens", event.usage.cached_tokens);
  return event;
}

Result<std::vector<std::string>> read_ready_models(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  std::vector<std::string> models;
  for (const json::Value& value : array_of(*object, "data")) {
    std::string id;
    bool ready = true;
    read(as_object(value), "id", id);
    read(object_of(as_object(value), "x_flotilla"), "ready", ready);
    if (ready && !id.empty()) models.push_back(std::move(id));
  }
  return models;
}

Result<std::vector<ClusterSpec>> read_clusters(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  std::vector<ClusterSpec> clusters;
  for (const json::Value& value : array_of(*object, "clusters")) {
    const json::Object& from = as_object(value);
    ClusterSpec cluster;
    read(from, "id", cluster.id);
    read(from, "label", cluster.label);
    read(from, "kind", cluster.kind);
    read(from, "models_dir", cluster.models_dir);
    read(from, "reload_on_restart", cluster.reload_on_restart);
    for (const json::Value& item : array_of(from, "nodes")) {
      NodeSpec node;
      read(as_object(item), "id", node.id);
      read(as_object(item), "label", node.label);
      read(as_object(item), "transport", node.transport);
      read(as_object(item), "host", node.host);
      read(as_object(item), "user", node.user);
      read(as_object(item), "port", node.port);
      read(as_object(item), "url", node.url);
      read(as_object(item), "upstream_model", node.upstream_model);
      read(as_object(item), "models_dir", node.models_dir);
      read(as_object(item), "threads", node.threads);
      cluster.nodes.push_back(std::move(node));
    }
    clusters.push_back(std::move(cluster));
  }
  return clusters;
}

Result<ClusterStatus> read_status(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  ClusterStatus status;
  read(*object, "cluster", status.spec.id);
  if (status.spec.id.empty()) return fail(Code::BadGateway, "the answer is no cluster's status");
  for (const json::Value& value : array_of(*object, "loading")) {
    status.loading.push_back(loading_status(as_object(value)));
  }
  for (const json::Value& value : array_of(*object, "pools")) {
    status.pools.push_back(pool_status(as_object(value)));
  }
  return status;
}

Result<LoadAnswer> read_load_answer(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  LoadAnswer answer;
  read(*object, "cluster", answer.cluster);
  read(*object, "load_s", answer.load_s);
  read(*object, "loaded", answer.loaded);
  answer.pool = pool_status(*object);
  return answer;
}

Result<ReplicaStatus> read_replica_answer(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  return replica_status(object_of(*object, "replica"));
}

}  // namespace flotilla::api
