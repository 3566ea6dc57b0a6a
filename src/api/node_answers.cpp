#include "api/node_answers.h"

#include "api/json.h"

namespace flotilla::api {
namespace {

json::Array texts_array(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

json::Object telemetry_object(const NodeTelemetry& node) {
  const NodeStatus& status = node.status;
  json::Array replicas;
  for (const ReplicaMemory& replica : node.replicas) {
    replicas.push_back(json::Object{
        {"alias", replica.alias}, {"node", replica.node}, {"rss_bytes", replica.rss_bytes}});
  }
  json::Array gpus;
  for (const GpuTelemetry& gpu : node.machine.gpus) {
    const auto known = [](std::optional<double> value) {
      return value ? json::Value(*value) : json::Value();
    };
    gpus.push_back(json::Object{{"index", gpu.index},
                                {"name", gpu.name},
                                {"memory_total_bytes", gpu.memory_total},
                                {"memory_used_bytes", gpu.memory_used},
                                {"busy_percent", known(gpu.busy_percent)},
                                {"temperature_c", known(gpu.temperature_c)},
                                {"power_w", known(gpu.power_w)}});
  }
  json::Object out{{"node", status.id},   {"label", status.label}, {"transport", status.transport},
                   {"host", status.host}, {"state", status.state}, {"reason", status.reason}};
  out["version"] = status.version;
  out["platform"] = status.platform;
  out["outdated"] = status.outdated;
  out["round_trip_ms"] = status.round_trip_ms;
  out["memory_total_bytes"] = node.machine.memory_total;
  out["memory_available_bytes"] = node.machine.memory_available;
  out["cpu_load"] = node.machine.cpu_load;
  out["cores"] = node.machine.cores;
  out["replicas"] = std::move(replicas);
  out["gpus"] = std::move(gpus);
  return out;
}

// Lenient: the server may be newer than the command.
class Answer {
 public:
  explicit Answer(const json::Object& object) : object_(object) {}
  std::string text(const char* name) const {
    const json::Value* value = object_.if_contains(name);
    const auto* text = value != nullptr ? value->if_string() : nullptr;
    return text != nullptr ? std::string(*text) : std::string();
  }
  bool yes(const char* name) const {
    const json::Value* value = object_.if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> out;
    const json::Value* value = object_.if_contains(name);
    if (value == nullptr || !value->is_array()) return out;
    for (const json::Value& one : value->get_array())
      if (const auto* text = one.if_string()) out.emplace_back(*text);
    return out;
  }

 private:
  const json::Object& object_;
};

}  // namespace

std::string to_json(const NodeTelemetry& node) { return json::to_text(telemetry_object(node)); }

std::string nodes_json(const std::vector<NodeTelemetry>& nodes) {
  json::Array list;
  for (const NodeTelemetry& node : nodes) list.push_back(telemetry_object(node));
  return json::to_text(json::Object{{"nodes", std::move(list)}});
}

std::string to_json(const NodeTest& test) {
  return json::to_text(json::Object{{"node", test.node},
                                    {"reachable", true},
                                    {"version", test.version},
                                    {"outdated", test.outdated},
                                    {"model", test.model},
                                    {"engine", test.engine},
                                    {"took_ms", test.took_ms}});
}

Result<TrustOrder> parse_trust(std::string_view body) {
  TrustOrder order;
  if (body.empty()) return order;
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  order.fingerprint = reader.string("fingerprint", 200).value_or("");
  if (!order.fingerprint.empty() && !order.fingerprint.starts_with("SHA256:"))
    reader.refuse("fingerprint", "must be one that the machine shows, like \"SHA256:…\"");
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return order;
}

std::string to_json(const TrustAnswer& answer) {
  return json::to_text(json::Object{{"node", answer.node},
                                    {"host", answer.host},
                                    {"fingerprints", texts_array(answer.fingerprints)},
                                    {"file", answer.file},
                                    {"known", answer.known},
                                    {"changed", answer.changed}});
}

Result<TrustAnswer> read_trust_answer(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  const Answer answer(*object);
  TrustAnswer out;
  out.node = answer.text("node");
  out.host = answer.text("host");
  out.fingerprints = answer.texts("fingerprints");
  out.file = answer.text("file");
  out.known = answer.yes("known");
  out.changed = answer.yes("changed");
  return out;
}

std::string to_json(const BootstrapAnswer& answer) {
  return json::to_text(json::Object{{"node", answer.node},
                                    {"platform", answer.platform},
                                    {"path", answer.path},
                                    {"version", answer.version},
                                    {"restarted", answer.restarted},
                                    {"up", answer.up}});
}

Result<BootstrapAnswer> read_bootstrap_answer(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  const Answer answer(*object);
  BootstrapAnswer out;
  out.node = answer.text("node");
  out.platform = answer.text("platform");
  out.path = answer.text("path");
  out.version = answer.text("version");
  out.restarted = answer.yes("restarted");
  out.up = answer.yes("up");
  return out;
}

}  // namespace flotilla::api
