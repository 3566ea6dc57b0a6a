#include "gateway/doctor.h"

#include <fmt/format.h>

namespace flotilla::gateway {
namespace {

using Level = api::Finding::Level;

constexpr std::int64_t kDiskLow = 1LL << 30;

class Report {
 public:
  explicit Report(std::string cluster) : cluster_(std::move(cluster)) {}
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
  report.add(node.id, "link", Level::Ok, fmt::format("up, {:.1f} ms", node.round_trip_ms));
  if (node.outdated)
    report.add(node.id, "version", Level::Warning,
               fmt::format("flotilla {} there, another here", node.version),
               fmt::format("flotilla node bootstrap {}", node.id));
  else
    report.add(node.id, "version", Level::Ok, node.version);
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
               "convert the model again with those left as they are");
  const std::int64_t disk = node.answer.disk_free_bytes;
  if (disk > 0 && disk < kDiskLow)
    report.add(node.node, "disk", Level::Warning, fmt::format("{} MiB are free", disk >> 20),
               "make room where the models are");
}

}  // namespace

Awaitable<std::vector<api::Finding>> examine(Control& control, api::ClusterSpec cluster) {
  Report report(cluster.id);
  co_await control.nodes().meet(cluster.nodes);
  for (const api::NodeSpec& node : cluster.nodes)
    look_at_link(report, control.nodes().status_of(node));
  for (const auto& pool : std::vector(control.pools())) {
    if (pool->options().cluster != cluster.id) continue;
    const GenerationSpec generation = pool->generation();
    if (generation.load.model == api::kSyntheticModel) continue;
    const auto nodes = co_await control.ask_nodes(cluster, generation);
    for (const api::NodePreflight& node : nodes) look_at_model(report, node, generation.load.model);
  }
  co_return std::move(report.findings);
}

}  // namespace flotilla::gateway
