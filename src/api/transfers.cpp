#include "api/transfers.h"

#include <algorithm>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kNodesMax = 1000;

const char* node_word(TransferState state) {
  switch (state) {
    case TransferState::Waiting: return "waiting";
    case TransferState::Running: return "copying";
    case TransferState::Done: return "done";
    case TransferState::Failed: return "failed";
    case TransferState::Cancelled: return "cancelled";
  }
  return "";
}

TransferState parse_word(std::string_view word) {
  for (const auto state : {TransferState::Waiting, TransferState::Running, TransferState::Done,
                           TransferState::Cancelled}) {
    if (word == node_word(state)) return state;
  }
  return TransferState::Failed;
}

json::Object node_object(const TransferNode& node) {
  const auto eta = node.eta_s();
  return {{"node", node.node},
          {"state", node_word(node.state)},
          {"file", node.file},
          {"done_bytes", node.done_bytes},
          {"total_bytes", node.total_bytes},
          {"resumed_bytes", node.resumed_bytes},
          {"bytes_per_s", node.bytes_per_s},
          {"eta_s", eta ? json::Value(*eta) : json::Value()},
          {"error", node.error}};
}

json::Object transfer_object(const Transfer& transfer) {
  json::Array nodes;
  for (const TransferNode& node : transfer.nodes) nodes.push_back(node_object(node));
  const TransferState state = transfer.state();
  return {{"id", transfer.id},
          {"cluster", transfer.cluster},
          {"model", transfer.model},
          {"source", transfer.source},
          {"state", state == TransferState::Running ? "running" : node_word(state)},
          {"total_bytes", transfer.total_bytes},
          {"began_unix_ms", transfer.began_unix_ms},
          {"took_s", transfer.took_s},
          {"nodes", std::move(nodes)}};
}

json::Array list_of(const std::vector<Transfer>& transfers) {
  json::Array list;
  for (const Transfer& transfer : transfers) list.push_back(transfer_object(transfer));
  return list;
}

}  // namespace

Result<SyncSpec> parse_sync(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  SyncSpec spec;
  spec.cluster = reader.string("cluster", 64).value_or("");
  reader.require("cluster", "a cluster's id");
  spec.model = reader.string("model", 4000).value_or("");
  reader.require("model", "its path in models_dir");
  if (!fault && spec.model.empty()) reader.refuse("model", "must be its path in models_dir");
  if (const json::Array* nodes = reader.array("nodes", kNodesMax)) {
    for (const json::Value& node : *nodes) {
      if (node.is_string())
        spec.nodes.emplace_back(node.get_string());
      else
        reader.refuse("nodes", "must be a list of nodes' ids");
    }
  }
  spec.from = reader.string("from", 64).value_or("");
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return spec;
}

std::string to_json(const SyncSpec& spec) {
  json::Object out{{"cluster", spec.cluster}, {"model", spec.model}};
  if (!spec.nodes.empty()) out["nodes"] = json::Array(spec.nodes.begin(), spec.nodes.end());
  if (!spec.from.empty()) out["from"] = spec.from;
  return json::to_text(out);
}

std::optional<double> TransferNode::eta_s() const {
  if (state != TransferState::Running || bytes_per_s <= 0) return std::nullopt;
  return static_cast<double>(total_bytes - done_bytes) / bytes_per_s;
}

TransferState Transfer::state() const {
  const auto any = [this](TransferState state) {
    return std::ranges::any_of(nodes,
                               [&](const TransferNode& node) { return node.state == state; });
  };
  if (any(TransferState::Running) || any(TransferState::Waiting)) return TransferState::Running;
  if (any(TransferState::Failed)) return TransferState::Failed;
  return any(TransferState::Cancelled) ? TransferState::Cancelled : TransferState::Done;
}

std::string to_json(const Transfer& transfer) { return json::to_text(transfer_object(transfer)); }

std::string transfers_json(const std::vector<Transfer>& transfers) {
  return json::to_text(json::Object{{"transfers", list_of(transfers)}});
}

std::string transfers_array(const std::vector<Transfer>& transfers) {
  return json::to_text(list_of(transfers));
}

Result<Transfer> read_transfer(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  Transfer out;
  out.id = in.string("id").value_or("");
  out.model = in.string("model").value_or("");
  out.source = in.string("source").value_or("");
  out.total_bytes = in.integer("total_bytes", 0, INT64_MAX).value_or(0);
  out.took_s = in.number("took_s", 0, 1e15).value_or(0);
  const json::Array* nodes = in.array("nodes", kNodesMax);
  for (std::size_t i = 0; nodes != nullptr && i < nodes->size(); ++i) {
    const json::Object* one = (*nodes)[i].if_object();
    if (one == nullptr) continue;
    json::Reader from(*one, fault, json::item_path("nodes", i));
    TransferNode& node = out.nodes.emplace_back();
    node.node = from.string("node").value_or("");
    node.state = parse_word(from.string("state").value_or(""));
    node.file = from.string("file").value_or("");
    node.done_bytes = from.integer("done_bytes", 0, INT64_MAX).value_or(0);
    node.total_bytes = from.integer("total_bytes", 0, INT64_MAX).value_or(0);
    node.resumed_bytes = from.integer("resumed_bytes", 0, INT64_MAX).value_or(0);
    node.bytes_per_s = from.number("bytes_per_s", 0, 1e15).value_or(0);
    node.error = from.string("error").value_or("");
  }
  if (fault) return fault.unexpected();
  return out;
}

}  // namespace flotilla::api
