#include "api/declared.h"

#include <array>

#include <fmt/format.h>

#include "api/json.h"
#include "base/sha256.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kListMax = 10'000;

std::unexpected<Error> not_known(const Error& error) {
  return fail(Code::BadGateway,
              fmt::format("the server has something that this flotilla does not know ({}); use one "
                          "of the server's version",
                          error.message));
}

Result<ClusterSpec> read_cluster(const json::Value& value) {
  const json::Object* object = value.if_object();
  const json::Value* id = object == nullptr ? nullptr : object->if_contains("id");
  if (id == nullptr || !id->is_string())
    return fail(Code::BadGateway, "a cluster in the answer has no id");
  return parse_cluster(json::to_text(value), std::string(id->get_string()));
}

Result<DeclaredPool> read_pool(const json::Value& value) {
  const json::Object* object = value.if_object();
  if (object == nullptr) return fail(Code::BadGateway, "a pool in the answer is no object");
  json::Fault fault;
  json::Reader reader(*object, fault);
  DeclaredPool pool;
  reader.require("cluster", "a cluster's id");
  pool.cluster = reader.string("cluster").value_or("");
  if (fault) return fault.unexpected();
  json::Object rest = *object;
  rest.erase("cluster");
  auto load = parse_load(json::to_text(rest));
  if (!load) return fail(load.error());
  pool.load = std::move(*load);
  return pool;
}

}  // namespace

std::string api_key_fingerprint(std::string_view node, std::string_view api_key) {
  const std::array<std::string_view, 4> parts = {"flotilla api_key\n", node, "\n", api_key};
  return hex_text(sha256(parts)).substr(0, 12);
}

std::string to_json(const Declared& declared) {
  json::Array clusters;
  json::Object fingerprints;
  for (const ClusterSpec& cluster : declared.clusters) {
    clusters.push_back(*json::parse(to_json(cluster, Secrets::Hidden)));
    for (const NodeSpec& node : cluster.nodes)
      if (!node.api_key.empty()) fingerprints[node.id] = api_key_fingerprint(node.id, node.api_key);
  }
  json::Array pools;
  for (const DeclaredPool& pool : declared.pools) {
    json::Object object = *json::parse_object(to_json(pool.load));
    object["cluster"] = pool.cluster;
    pools.push_back(std::move(object));
  }
  return json::to_text(json::Object{{"clusters", std::move(clusters)},
                                    {"pools", std::move(pools)},
                                    {"api_key_fingerprints", std::move(fingerprints)}});
}

Result<Declared> read_declared(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  const json::Array* clusters = reader.array("clusters", kListMax);
  const json::Array* pools = reader.array("pools", kListMax);
  const json::Object* fingerprints = reader.object("api_key_fingerprints");
  if (fault) return fault.unexpected();
  if (clusters == nullptr || pools == nullptr || fingerprints == nullptr)
    return fail(Code::BadGateway, "the answer does not say what is declared");
  Declared out;
  for (const json::Value& value : *clusters) {
    auto cluster = read_cluster(value);
    if (!cluster) return not_known(cluster.error());
    out.clusters.push_back(std::move(*cluster));
  }
  for (const json::Value& value : *pools) {
    auto pool = read_pool(value);
    if (!pool) return not_known(pool.error());
    out.pools.push_back(std::move(*pool));
  }
  for (const auto& [node, value] : *fingerprints)
    if (value.is_string())
      out.api_key_fingerprints[std::string(node)] = std::string(value.get_string());
  return out;
}

}  // namespace flotilla::api
