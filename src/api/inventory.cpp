#include "api/inventory.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kListMax = 100'000;

bool same_file(const ModelFile& a, const ModelFile& b) {
  return a.folder == b.folder && a.bytes == b.bytes && a.parts == b.parts &&
         a.architecture == b.architecture && a.quantization == b.quantization;
}

json::Array names_array(const std::vector<std::string>& names) {
  json::Array out;
  for (const std::string& name : names) out.emplace_back(name);
  return out;
}

json::Object model_object(const FoundModel& model) {
  json::Object out{{"model", model.file.path},
                   {"size_bytes", model.file.bytes},
                   {"parts", model.file.parts},
                   {"folder", model.file.folder},
                   {"family", model.file.architecture},
                   {"quantization", model.file.quantization},
                   {"context_trained", model.file.context_trained},
                   {"nodes", names_array(model.nodes)},
                   {"missing", names_array(model.missing)},
                   {"differing", names_array(model.differing)}};
  if (!model.file.error.empty()) out["error"] = model.file.error;
  return out;
}

json::Object models_object(const ClusterModels& cluster) {
  json::Array models;
  for (const FoundModel& model : merge_models(cluster.nodes)) models.push_back(model_object(model));
  json::Array asked;
  for (const NodeModels& node : cluster.nodes) {
    asked.push_back(json::Object{{"node", node.node},
                                 {"models_dir", node.models_dir},
                                 {"truncated", node.truncated},
                                 {"error", node.error}});
  }
  return {{"cluster", cluster.cluster}, {"models", std::move(models)}, {"nodes", std::move(asked)}};
}

std::vector<std::string> read_names(json::Reader& reader, std::string_view name) {
  std::vector<std::string> out;
  const json::Array* names = reader.array(name, kListMax);
  for (const json::Value& one : names != nullptr ? *names : json::Array())
    if (const auto* text = one.if_string()) out.emplace_back(*text);
  return out;
}

FoundModel read_model(json::Reader reader) {
  FoundModel out;
  out.file.path = reader.string("model").value_or("");
  out.file.bytes = reader.integer("size_bytes", 0, INT64_MAX).value_or(0);
  out.file.folder = reader.boolean("folder").value_or(false);
  out.file.architecture = reader.string("family").value_or("");
  out.file.quantization = reader.string("quantization").value_or("");
  out.file.error = reader.string("error").value_or("");
  out.nodes = read_names(reader, "nodes");
  out.missing = read_names(reader, "missing");
  out.differing = read_names(reader, "differing");
  return out;
}

json::Object node_object(const NodePreflight& node) {
  const PreflightAnswer& answer = node.answer;
  json::Object out{{"node", node.node},
                   {"model_present", answer.model_present},
                   {"model_bytes", answer.model_bytes},
                   {"family", answer.architecture},
                   {"quantization", answer.quantization},
                   {"context", answer.context},
                   {"context_trained", answer.context_trained},
                   {"weights_bytes", answer.weights_bytes},
                   {"kv_bytes", answer.kv_bytes},
                   {"buffer_bytes", answer.buffer_bytes},
                   {"need_bytes", answer.need_bytes},
                   {"free_bytes", answer.free_bytes}};
  out["on_devices"] = answer.on_devices;
  out["advice"] = answer.advice;
  out["estimated"] = answer.estimated;
  out["replicas_here"] = node.sharing;
  out["reachable"] = node.error.empty();
  out["version"] = node.version;
  out["outdated"] = node.outdated;
  out["hash"] = answer.hash;
  out["differs"] = node.differs;
  out["disk_free_bytes"] = answer.disk_free_bytes;
  out["fits"] = node.fits();
  out["verdict"] = node.words();
  out["fix"] = node.fix;
  return out;
}

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1LL << 30));
}

// A path in models_dir as a word of a shell's command line, and none that looks like an option.
std::string shell_word(std::string text) {
  if (text.starts_with('-')) text = "./" + text;
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// How `other` is not the file that `usual` is; empty: nothing says so.
std::string difference(const PreflightAnswer& usual, const PreflightAnswer& other) {
  if (usual.model_bytes != other.model_bytes)
    return fmt::format("its file has {} bytes, the other nodes' {}", other.model_bytes,
                       usual.model_bytes);
  if (!usual.hash.empty() && !other.hash.empty() && usual.hash != other.hash)
    return fmt::format(
        "its file is of the same size but another (SHA-256 {}…, the other nodes' "
        "{}…)",
        other.hash.substr(0, 12), usual.hash.substr(0, 12));
  return {};
}

// The node whose file most others have, too; of equals the first.
const NodePreflight* usual_file(const std::vector<NodePreflight>& nodes) {
  const NodePreflight* usual = nullptr;
  std::ptrdiff_t most = 0;
  for (const NodePreflight& node : nodes) {
    if (!node.loadable()) continue;
    const auto same = std::ranges::count_if(nodes, [&](const NodePreflight& other) {
      return other.loadable() && other.answer.model_bytes == node.answer.model_bytes &&
             other.answer.hash == node.answer.hash;
    });
    if (same > most) usual = &node;
    most = std::max(most, same);
  }
  return usual;
}

}  // namespace

std::vector<FoundModel> merge_models(const std::vector<NodeModels>& nodes) {
  std::map<std::string, FoundModel> by_path;
  for (const NodeModels& node : nodes) {
    for (const ModelFile& file : node.models) {
      const auto [at, added] = by_path.try_emplace(file.path);
      FoundModel& model = at->second;
      if (added) model.file = file;
      model.nodes.push_back(node.node);
      if (!same_file(model.file, file)) model.differing.push_back(node.node);
    }
  }
  std::vector<FoundModel> out;
  for (auto& [path, model] : by_path) {
    for (const NodeModels& node : nodes) {
      // A node that could not be asked is not known to lack anything.
      if (node.error.empty() && std::ranges::find(model.nodes, node.node) == model.nodes.end())
        model.missing.push_back(node.node);
    }
    out.push_back(std::move(model));
  }
  return out;
}

std::string to_json(const ClusterModels& models) { return json::to_text(models_object(models)); }

std::string to_json(const std::vector<ClusterModels>& clusters) {
  json::Array list;
  for (const ClusterModels& models : clusters) list.push_back(models_object(models));
  return json::to_text(json::Object{{"clusters", std::move(list)}});
}

Result<ModelTable> read_models(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  ModelTable table;
  const json::Array* clusters = reader.array("clusters", kListMax);
  for (const json::Value& cluster : clusters != nullptr ? *clusters : json::Array()) {
    if (!cluster.is_object()) continue;
    json::Reader from(cluster.get_object(), fault);
    const std::string name = from.string("cluster").value_or("");
    table.clusters.push_back(name);
    const json::Array* models = from.array("models", kListMax);
    for (const json::Value& model : models != nullptr ? *models : json::Array())
      if (model.is_object())
        table.rows.push_back({name, read_model(json::Reader(model.get_object(), fault))});
    const json::Array* nodes = from.array("nodes", kListMax);
    for (const json::Value& node : nodes != nullptr ? *nodes : json::Array()) {
      if (!node.is_object()) continue;
      json::Reader asked(node.get_object(), fault);
      std::string error = asked.string("error").value_or("");
      if (!error.empty())
        table.troubles.push_back({name, asked.string("node").value_or(""), std::move(error)});
    }
  }
  if (fault) return fault.unexpected();
  return table;
}

std::int64_t NodePreflight::spare_bytes() const {
  return answer.free_bytes - answer.need_bytes * sharing;
}

bool NodePreflight::loadable() const {
  return error.empty() && unserved.empty() && answer.model_present &&
         (answer.fits || answer.need_bytes > 0);
}

bool NodePreflight::fits() const {
  return loadable() && answer.fits && spare_bytes() >= 0 && differs.empty();
}

bool NodePreflight::beyond_metal() const {
  return answer.metal_bytes > 0 && answer.need_bytes * sharing > answer.metal_bytes;
}

std::string NodePreflight::words() const {
  if (!error.empty()) return error;
  if (!unserved.empty()) return unserved;
  if (!differs.empty()) return differs;
  if (loadable() && answer.fits && spare_bytes() < 0)
    return fmt::format("{} x {} on this machine is more than is free. Each replica: {}", sharing,
                       gib(answer.need_bytes), answer.verdict);
  return answer.verdict;
}

std::string raise_metal(std::int64_t bytes) {
  return fmt::format("sudo sysctl iogpu.wired_limit_mb={}", (bytes >> 20) + 1024);
}

void compare_nodes(std::vector<NodePreflight>& nodes, const std::string& cluster,
                   const std::string& model) {
  const NodePreflight* usual = usual_file(nodes);
  const auto copy_to = [&](const std::string& node) {
    if (model.starts_with('/') || usual->answer.folder)
      return fmt::format("copy {} there as it is on node {}", model, usual->node);
    return fmt::format("flotilla model sync {} {} --node {}: the file of node {}", cluster,
                       shell_word(model), node, usual->node);
  };
  for (NodePreflight& node : nodes) {
    if (!node.unserved.empty()) {
      node.fix = node.unserved.substr(node.unserved.find("; ") + 2);
      continue;
    }
    if (!node.loadable()) {
      if (node.error.empty() && usual != nullptr)
        node.fix = copy_to(node.node);
      else if (node.error.empty() && node.answer.model_present)
        node.fix = "change what was asked for, or take another file of the model";
      else if (node.error.empty())
        node.fix = "put the model on every node, at the same path";
      continue;  // an error says itself what would do
    }
    node.differs = difference(usual->answer, node.answer);
    if (!node.differs.empty())
      node.fix = copy_to(node.node);
    else if (node.beyond_metal())
      node.fix = fmt::format("{} on node {}'s machine, or a smaller quantisation",
                             raise_metal(node.answer.need_bytes * node.sharing), node.node);
    else if (!node.answer.fits || node.spare_bytes() < 0)
      node.fix = "take a smaller context or batch_size, or a smaller quantisation";
    else if (node.outdated)
      node.fix = fmt::format("flotilla node bootstrap {}", node.node);
  }
}

std::string to_json(const PreflightReport& report) {
  json::Array nodes;
  for (const NodePreflight& node : report.nodes) nodes.push_back(node_object(node));
  json::Object out{{"cluster", report.cluster},
                   {"model", report.model},
                   {"batch", report.batch},
                   {"width", report.width}};
  out["fits"] = !report.nodes.empty() && std::ranges::all_of(report.nodes, &NodePreflight::fits);
  const auto least = std::ranges::min_element(report.nodes, {}, [](const NodePreflight& node) {
    return std::pair(node.fits(), node.spare_bytes());
  });
  out["limiting_node"] = least == report.nodes.end() ? json::Value() : json::Value(least->node);
  out["nodes"] = std::move(nodes);
  return json::to_text(out);
}

Result<PreflightRows> read_preflight(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  PreflightRows out;
  out.fits = reader.boolean("fits").value_or(false);
  const json::Value* limiting = reader.find("limiting_node");
  if (limiting != nullptr && limiting->is_string())
    out.limiting_node = std::string(limiting->get_string());
  const json::Array* nodes = reader.array("nodes", kListMax);
  for (const json::Value& node : nodes != nullptr ? *nodes : json::Array()) {
    if (!node.is_object()) continue;
    json::Reader from(node.get_object(), fault);
    PreflightRow& row = out.nodes.emplace_back();
    row.node = from.string("node").value_or("");
    row.fits = from.boolean("fits").value_or(false);
    row.replicas_here = static_cast<int>(from.integer("replicas_here", 0, 1'000'000).value_or(1));
    row.need_bytes = from.integer("need_bytes", 0, INT64_MAX).value_or(0);
    row.free_bytes = from.integer("free_bytes", 0, INT64_MAX).value_or(0);
    row.disk_free_bytes = from.integer("disk_free_bytes", 0, INT64_MAX).value_or(0);
    row.verdict = from.string("verdict").value_or("");
    row.fix = from.string("fix").value_or("");
  }
  if (fault) return fault.unexpected();
  return out;
}

}  // namespace flotilla::api
