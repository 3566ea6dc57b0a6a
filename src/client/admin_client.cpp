#include "client/admin_client.h"

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/json_text.h"
#include "api/read_answers.h"

namespace flotilla::client {
namespace {

constexpr Duration kQuick = std::chrono::seconds(30);
constexpr Duration kTrust = std::chrono::seconds(90);
constexpr Duration kLoad = std::chrono::hours(24);  // the server knows when a load has failed

std::string address_of(const http::Endpoint& endpoint) {
  return fmt::format("{}://{}:{}{}", endpoint.tls ? "https" : "http", endpoint.host, endpoint.port,
                     endpoint.base_path);
}

// Ids have no character that a path must encode; what the user mistyped may have.
std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

AdminClient::AdminClient(Executor executor, http::Endpoint endpoint, std::string token)
    : client_(std::move(executor), std::move(endpoint)), token_(std::move(token)) {}

Task<std::string> AdminClient::call(std::string method, std::string target, std::string body,
                                    Duration limit) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.set("Accept", "application/json");
  if (!body.empty()) request.headers.set("Content-Type", "application/json");
  if (!token_.empty()) request.headers.set("Authorization", "Bearer " + token_);
  request.body = std::move(body);
  auto answer = co_await client_.fetch(std::move(request), limit);
  if (!answer) {
    Error error = answer.error();
    if (error.reason == "connect") {
      error.message = fmt::format(
          "no server answers at {} ({}); start one with `flotilla serve`, or name it with --server",
          address_of(client_.endpoint()), error.message);
    }
    co_return fail(std::move(error));
  }
  if (answer->status >= 300) co_return fail(api::parse_error_body(answer->status, answer->body));
  co_return std::move(answer->body);
}

Task<std::vector<api::ClusterSpec>> AdminClient::clusters() {
  const auto body = co_await call("GET", "/admin/clusters", {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_clusters(*body);
}

Task<api::Declared> AdminClient::declared() {
  const auto body = co_await call("GET", "/admin/declared", {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_declared(*body);
}

Task<api::ClusterStatus> AdminClient::status(std::string cluster) {
  const auto body =
      co_await call("GET", fmt::format("/admin/clusters/{}/status", encoded(cluster)), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_status(*body);
}

Task<void> AdminClient::put_cluster(api::ClusterSpec cluster) {
  std::string target = "/admin/clusters/" + encoded(cluster.id);
  std::string json = api::to_json(cluster, api::Secrets::Kept);
  const auto body = co_await call("PUT", std::move(target), std::move(json), kQuick);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

Task<void> AdminClient::remove_cluster(std::string cluster) {
  const auto body = co_await call("DELETE", "/admin/clusters/" + encoded(cluster), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

Task<api::LoadAnswer> AdminClient::load(std::string cluster, api::LoadSpec spec) {
  std::string target = fmt::format("/admin/clusters/{}/load", encoded(cluster));
  std::string json = api::to_json(spec);
  const auto body = co_await call("POST", std::move(target), std::move(json), kLoad);
  if (!body) co_return fail(body.error());
  co_return api::read_load_answer(*body);
}

Task<void> AdminClient::unload(std::string cluster, std::string alias, bool force) {
  std::string json =
      alias.empty() ? fmt::format(R"({{"force":{}}})", force)
                    : fmt::format(R"({{"alias":{},"force":{}}})", api::json_string(alias), force);
  std::string target = fmt::format("/admin/clusters/{}/unload", encoded(cluster));
  const auto body = co_await call("POST", std::move(target), std::move(json), kLoad);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

Task<api::RequestRecord> AdminClient::request(std::string id) {
  const auto body = co_await call("GET", "/admin/requests/" + encoded(id), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_request(*body);
}

Task<api::LoadAnswer> AdminClient::reload(std::string cluster, api::ReloadSpec spec) {
  std::string target = fmt::format("/admin/clusters/{}/reload", encoded(cluster));
  std::string json = api::to_json(spec);
  const auto body = co_await call("POST", std::move(target), std::move(json), kLoad);
  if (!body) co_return fail(body.error());
  co_return api::read_load_answer(*body);
}

Task<api::ReplicaStatus> AdminClient::order_replica(std::string cluster, std::string alias,
                                                    std::string node, api::ReplicaAction action) {
  std::string target = fmt::format("/admin/clusters/{}/pools/{}/replicas/{}/{}", encoded(cluster),
                                   encoded(alias), encoded(node), api::to_string(action));
  const auto body = co_await call("POST", std::move(target), "{}", kLoad);
  if (!body) co_return fail(body.error());
  co_return api::read_replica_answer(*body);
}

Task<std::vector<api::KeyShown>> AdminClient::keys() {
  const auto body = co_await call("GET", "/admin/keys", {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_keys(*body);
}

Task<api::NewKey> AdminClient::add_key(api::KeySpec spec) {
  const auto body = co_await call("POST", "/admin/keys", api::to_json(spec), kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_new_key(*body);
}

Task<void> AdminClient::change_key(std::string id, api::KeySpec spec) {
  const auto body = co_await call("PUT", "/admin/keys/" + encoded(id), api::to_json(spec), kQuick);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

Task<std::vector<api::SettingShown>> AdminClient::settings() {
  const auto body = co_await call("GET", "/admin/settings", {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_settings(*body);
}

Task<void> AdminClient::put_settings(api::SettingChanges changes) {
  const auto body = co_await call("PUT", "/admin/settings", api::to_json(changes), kQuick);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

Task<void> AdminClient::remove_key(std::string id) {
  const auto body = co_await call("DELETE", "/admin/keys/" + encoded(id), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

Task<std::vector<api::UsageShown>> AdminClient::usage(api::UsageBy by) {
  const auto body =
      co_await call("GET", fmt::format("/admin/usage?by={}", api::to_string(by)), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_usage(by, *body);
}

Task<std::string> AdminClient::usage_csv(api::UsageBy by) {
  co_return co_await call("GET", fmt::format("/admin/usage?by={}&format=csv", api::to_string(by)),
                          {}, kQuick);
}

Task<api::TrustAnswer> AdminClient::trust_node(std::string node, std::string fingerprint) {
  std::string json = fingerprint.empty()
                         ? std::string("{}")
                         : fmt::format(R"({{"fingerprint":{}}})", api::json_string(fingerprint));
  std::string target = fmt::format("/admin/nodes/{}/trust", encoded(node));
  const auto body = co_await call("POST", std::move(target), std::move(json), kTrust);
  if (!body) co_return fail(body.error());
  co_return api::read_trust_answer(*body);
}

Task<api::BootstrapAnswer> AdminClient::bootstrap_node(std::string node) {
  std::string target = fmt::format("/admin/nodes/{}/bootstrap", encoded(node));
  const auto body = co_await call("POST", std::move(target), "{}", kLoad);
  if (!body) co_return fail(body.error());
  co_return api::read_bootstrap_answer(*body);
}

Task<std::vector<api::Finding>> AdminClient::doctor(std::string cluster) {
  std::string target = "/admin/doctor";
  if (!cluster.empty()) target += "?cluster=" + encoded(cluster);
  const auto body = co_await call("GET", std::move(target), {}, kTrust);
  if (!body) co_return fail(body.error());
  co_return api::read_findings(*body);
}

Task<api::ModelTable> AdminClient::models() {
  const auto body = co_await call("GET", "/admin/models", {}, kTrust);
  if (!body) co_return fail(body.error());
  co_return api::read_models(*body);
}

Task<api::PreflightRows> AdminClient::preflight(std::string cluster, std::string model,
                                                int context) {
  std::string target = fmt::format("/admin/clusters/{}/preflight?model={}&batch=true&context={}",
                                   encoded(cluster), encoded(model), context);
  const auto body = co_await call("GET", std::move(target), {}, kTrust);
  if (!body) co_return fail(body.error());
  co_return api::read_preflight(*body);
}

Task<api::Transfer> AdminClient::sync_model(api::SyncSpec spec) {
  const auto body = co_await call("POST", "/admin/models/sync", api::to_json(spec), kTrust);
  if (!body) co_return fail(body.error());
  co_return api::read_transfer(*body);
}

Task<api::Transfer> AdminClient::transfer(std::string id) {
  const auto body = co_await call("GET", "/admin/transfers/" + encoded(id), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return api::read_transfer(*body);
}

Task<void> AdminClient::cancel_transfer(std::string id) {
  const auto body = co_await call("DELETE", "/admin/transfers/" + encoded(id), {}, kQuick);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

}  // namespace flotilla::client
