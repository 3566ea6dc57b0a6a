#include "gateway/diagnosis.h"

#include <algorithm>

#include <fmt/format.h>

namespace flotilla::gateway {
namespace {

using Level = api::Finding::Level;

constexpr std::int64_t kDiskLow = 1LL << 30;
constexpr std::int64_t kStateDiskLow = 100LL << 20;
constexpr double kMemoryLow = 0.05;         // of the machine's
constexpr double kSlowLinkMs = 100;         // each token of an answer crosses it
constexpr int kManyRestarts = 3;            // of one replica since the pool was loaded
constexpr std::uint64_t kOpenFiles = 4096;  // 2 for each stream under way

class Report {
 public:
  explicit Report(std::string cluster = {}) : cluster_(std::move(cluster)) {}
  void add(const std::string& node, std::string check, Level level, std::string detail,
           std::string fix = {}) {
    api::Finding& finding = findings.emplace_back();
    finding.cluster = cluster_;
    finding.node = node;
    finding.check = std::move(check);
    finding.level = level;
    finding.detail = std::move(detail);
    finding.fix = std::move(fix);
  }
  const std::string& cluster() const { return cluster_; }
  std::vector<api::Finding> findings;

 private:
  std::string cluster_;
};

void look_at_link(Report& report, const api::NodeStatus& node) {
  if (node.state != "up") {
    // A reason ends in what would do.
    const auto remedy = node.reason.rfind("; ");
    return report.add(node.id, "link", Level::Failure,
                      node.reason.empty() ? node.state : node.reason.substr(0, remedy),
                      remedy == std::string::npos ? fmt::format("look at the machine {}", node.host)
                                                  : node.reason.substr(remedy + 2));
  }
  if (node.version.empty()) return report.add(node.id, "link", Level::Ok, "a server of its own");
  const std::string up = fmt::format("up, {:.1f} ms", node.round_trip_ms);
  if (node.round_trip_ms > kSlowLinkMs)
    report.add(node.id, "link", Level::Warning, up,
               "each token waits for the network: use a cable, or a node that is nearer");
  else
    report.add(node.id, "link", Level::Ok, up);
  if (node.outdated)
    report.add(node.id, "version", Level::Warning,
               fmt::format("flotilla {} there, another here", node.version),
               fmt::format("flotilla node bootstrap {}", node.id));
  else
    report.add(node.id, "version", Level::Ok, node.version);
}

void look_at_machine(Report& report, const std::string& node, const api::AgentTelemetry& machine) {
  if (machine.memory_total <= 0) return;
  const auto total = static_cast<double>(machine.memory_total);
  const auto left = static_cast<double>(machine.memory_available);
  const std::string detail = fmt::format("{} of {} MiB are free", machine.memory_available >> 20,
                                         machine.memory_total >> 20);
  if (left < kMemoryLow * total)
    report.add(node, "memory", Level::Warning, detail,
               "end other programs there, or load with a smaller context, batch_size or "
               "SESSION_STORE_BYTES");
  else
    report.add(node, "memory", Level::Ok, detail);
}

void look_at_model(Report& report, const api::NodePreflight& node, const std::string& model) {
  if (!node.error.empty()) return;  // the link's row says it
  const std::string check = "model " + model;
  if (node.loadable() && node.differs.empty()) {
    report.add(node.node, check, Level::Ok,
               node.answer.hash.empty() ? "there" : "there, " + node.answer.hash.substr(0, 12));
  } else {
    report.add(node.node, check, Level::Failure,
               node.loadable() ? node.differs : node.answer.verdict, node.fix);
  }
  if (!node.answer.advice.empty())
    report.add(node.node, "weights " + model, Level::Warning,
               node.answer.advice.substr(0, node.answer.advice.find("; ")),
               node.answer.advice.substr(node.answer.advice.find("; ") + 2));
  if (node.beyond_metal())
    report.add(node.node, "metal", Level::Warning,
               fmt::format("Metal may keep {} MiB in memory, the replicas of {} need {}",
                           node.answer.metal_bytes >> 20, model,
                           node.answer.need_bytes * node.sharing >> 20),
               api::raise_metal(node.answer.need_bytes * node.sharing));
  const std::int64_t disk = node.answer.disk_free_bytes;
  if (disk > 0 && disk < kDiskLow)
    report.add(node.node, "disk", Level::Warning, fmt::format("{} MiB are free", disk >> 20),
               "make room where the models are");
}

bool away(const api::ReplicaStatus& replica) {
  return replica.state.find("away") != std::string::npos;
}

std::string remedy(const ClusterFacts& facts, const std::string& alias,
                   const api::ReplicaStatus& replica) {
  const auto node = std::ranges::find(facts.nodes, replica.node, &api::NodeStatus::id);
  if (node != facts.nodes.end() && node->transport == "http")
    return "start that server, or correct the node's url, api_key or upstream_model";
  // What its link found out ends in what would do.
  if (const auto way = replica.last_error.rfind("; set "); way != std::string::npos)
    return replica.last_error.substr(way + 2);
  if (replica.last_error.find("memory") != std::string::npos)
    return "unload it and load it with a smaller context or batch_size, kv_type q8_0, or a smaller "
           "quantisation";
  return fmt::format("read its log: /admin/logs?node={}&replica={}", replica.node, alias);
}

// Why a replica does not serve, or does not keep serving.
void look_at_replica(Report& report, const ClusterFacts& facts, const std::string& alias,
                     const api::ReplicaStatus& replica) {
  const std::string check = "replica of " + alias;
  const std::string fix = remedy(facts, alias, replica);
  if (!replica.live && !away(replica) && replica.state == "waiting") {
    report.add(replica.node, check, Level::Failure,
               fmt::format("it does not come up: {} ({} attempts)",
                           replica.last_error.empty() ? "no reason is known" : replica.last_error,
                           replica.attempts),
               fix);
  } else if (replica.restarts >= kManyRestarts) {
    report.add(
        replica.node, check, Level::Warning,
        fmt::format("came back {} times; last ended: {}", replica.restarts, replica.last_error),
        fix);
  } else if (replica.live) {
    report.add(replica.node, check, Level::Ok, "serves");
  }
}

void look_at_loading(Report& report, const api::LoadingStatus& loading) {
  for (const api::NodeLoad& node : loading.nodes) {
    if (!node.stalled) continue;
    report.add(node.node, "loading " + loading.alias, Level::Failure,
               fmt::format("stands still at {} of {} MiB", node.loaded_bytes >> 20,
                           node.total_bytes >> 20),
               "look at the disk or network share that the model lies on");
  }
}

void look_at_pool(Report& report, const ClusterFacts& facts, const ClusterFacts::Pool& pool) {
  const api::PoolStatus& status = pool.status;
  const std::string check = "pool " + status.alias;
  const auto all = static_cast<int>(status.replicas.size());
  const int live = status.replicas_live();
  if (live == 0)
    report.add("", check, Level::Failure, "no replica serves; requests wait in its queue",
               "what its nodes and replicas lack stands in their rows");
  else if (live < all)
    report.add("", check, Level::Warning, fmt::format("{} of {} replicas serve", live, all),
               "what the others lack stands in their rows");
  else
    report.add("", check, Level::Ok, fmt::format("{} of {} replicas serve", live, all));
  if (pool.batch_asked && !status.batch && live > 0)
    report.add(
        "", check + ", batch", Level::Warning,
        fmt::format("loaded with batch and runs one request at a time: {}", status.batch_reason),
        "take a model whose cache can be batched (docs/models.md)");
  if (pool.queue_max > 0 && status.queue_depth * 10 > pool.queue_max * 8)
    report.add("", check + ", queue", Level::Warning,
               fmt::format("{} of {} places to wait are taken", status.queue_depth, pool.queue_max),
               status.batch ? "add a node, or give keys a max_in_flight"
                            : "load with batch, add a node, or give keys a max_in_flight");
  else if (!status.batch && !pool.batch_asked && status.queue_depth > 0)
    report.add(
        "", check + ", queue", Level::Warning,
        fmt::format("{} requests wait, and each replica runs one at a time", status.queue_depth),
        fmt::format("flotilla reload {} {} --batch", report.cluster(), status.alias));
  for (const api::ReplicaStatus& replica : status.replicas)
    look_at_replica(report, facts, status.alias, replica);
  for (const api::NodePreflight& node : pool.preflight) look_at_model(report, node, status.model);
}

}  // namespace

std::vector<api::Finding> diagnose(const ClusterFacts& facts) {
  Report report(facts.cluster);
  for (const api::NodeStatus& node : facts.nodes) {
    look_at_link(report, node);
    const auto machine = facts.machines.find(node.id);
    if (machine != facts.machines.end()) look_at_machine(report, node.id, machine->second);
  }
  if (facts.pools.empty())
    report.add("", "pools", Level::Warning, "nothing is loaded on this cluster",
               fmt::format("flotilla load {} MODEL.gguf --batch", facts.cluster));
  for (const api::LoadingStatus& loading : facts.loading) look_at_loading(report, loading);
  for (const ClusterFacts::Pool& pool : facts.pools) look_at_pool(report, facts, pool);
  return std::move(report.findings);
}

std::vector<api::Finding> diagnose(const ServerFacts& facts) {
  Report report;
  const std::string room =
      fmt::format("{} MiB are free in {}", facts.state_free_bytes >> 20, facts.state_dir);
  if (facts.state_free_bytes < kStateDiskLow)
    report.add("", "state", Level::Failure, room,
               "make room there: what is declared cannot be written");
  else
    report.add("", "state", Level::Ok, room);
  const std::string files = fmt::format("{} files may be open at once", facts.open_files_max);
  if (facts.open_files_max < kOpenFiles)
    report.add("", "open files", Level::Warning, files,
               fmt::format("ulimit -n {} before the server starts (the service's LimitNOFILE)",
                           kOpenFiles * 16));
  else
    report.add("", "open files", Level::Ok, files);
  const auto expired = std::ranges::count_if(facts.keys, [&](const api::KeyShown& key) {
    return key.spec.expires_unix_s > 0 && key.spec.expires_unix_s <= facts.unix_s;
  });
  if (expired > 0 && expired == std::ssize(facts.keys))
    report.add("", "keys", Level::Failure, "every API key has expired, so /v1 refuses everyone",
               "flotilla keys add NAME");
  else if (expired > 0)
    report.add("", "keys", Level::Warning,
               fmt::format("{} of {} API keys have expired", expired, facts.keys.size()),
               "flotilla keys list; remove them, or give them another day");
  return std::move(report.findings);
}

}  // namespace flotilla::gateway
