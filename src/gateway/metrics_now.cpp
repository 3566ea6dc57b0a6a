#include "gateway/metrics_now.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <ranges>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "platform/memory_info.h"
#include "platform/process.h"

namespace flotilla::gateway {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily family(const char* name, const char* help, MetricType type) {
  MetricFamily out;
  out.name = name;
  out.help = help;
  out.type = type;
  return out;
}

void add(MetricFamily& into, const Labels& labels, double value) {
  ClientMetric metric;
  metric.label = labels;
  if (into.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  into.metric.push_back(std::move(metric));
}

// `counts`: one for each edge and one beyond; `scale` turns an edge into the family's unit.
void add_histogram(MetricFamily& into, const Labels& labels, std::span<const std::uint64_t> counts,
                   std::span<const double> edges, double scale, double sum) {
  ClientMetric metric;
  metric.label = labels;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    seen += counts[i];
    metric.histogram.bucket.push_back({.cumulative_count = seen, .upper_bound = edges[i] * scale});
  }
  metric.histogram.sample_count = seen + counts.back();
  metric.histogram.sample_sum = sum;
  into.metric.push_back(std::move(metric));
}

struct Now {
  MetricFamily queue =
      family("flotilla_queue_depth", "Requests that wait for a place.", MetricType::Gauge);
  MetricFamily live =
      family("flotilla_replicas_live", "Replicas of a pool that serve.", MetricType::Gauge);
  MetricFamily total =
      family("flotilla_replicas", "Replicas that a pool should have.", MetricType::Gauge);
  MetricFamily up = family("flotilla_replica_up", "1 while a replica serves.", MetricType::Gauge);
  MetricFamily busy =
      family("flotilla_replica_requests_in_flight", "Requests in a replica.", MetricType::Gauge);
  MetricFamily width = family("flotilla_replica_width", "Sequences that a replica runs together.",
                              MetricType::Gauge);
  MetricFamily speed = family("flotilla_replica_tokens_per_second",
                              "Tokens generated, over the last seconds.", MetricType::Gauge);
  MetricFamily memory =
      family("flotilla_replica_resident_bytes", "Memory of a replica's runner.", MetricType::Gauge);
  MetricFamily overhead =
      family("flotilla_replica_step_overhead_ratio",
             "Share of the last seconds' steps that was not the forward pass.", MetricType::Gauge);
  MetricFamily stored = family("flotilla_session_store_bytes",
                               "Memory for conversations that do not compute.", MetricType::Gauge);
  MetricFamily on_disk =
      family("flotilla_session_store_disk_bytes",
             "Files of conversations for which there was no room in memory.", MetricType::Gauge);
  MetricFamily conversations = family("flotilla_session_store_conversations",
                                      "Conversations in that memory.", MetricType::Gauge);
  MetricFamily generated =
      family("flotilla_replica_generated_tokens_total",
             "Tokens that a replica's runner made since it started, whatever became of them.",
             MetricType::Counter);
  MetricFamily prompts = family("flotilla_replica_prompt_tokens_total",
                                "Prompt tokens that a replica's runner has begun answers to since "
                                "it started; a resumed request's count where it began.",
                                MetricType::Counter);
  MetricFamily cached =
      family("flotilla_replica_cached_prompt_tokens_total",
             "Of these, tokens that were not computed again.", MetricType::Counter);
  MetricFamily drafted =
      family("flotilla_replica_drafted_tokens_total",
             "Tokens that a replica's runner guessed and computed to see whether "
             "they are right, since it started.",
             MetricType::Counter);
  MetricFamily accepted = family("flotilla_replica_accepted_draft_tokens_total",
                                 "Of these, tokens that were right.", MetricType::Counter);
  MetricFamily restarts = family("flotilla_replica_restarts_total",
                                 "Times that a lost replica came back.", MetricType::Counter);
  MetricFamily steps = family("flotilla_step_seconds", "Forward passes, by how long they took.",
                              MetricType::Histogram);
  MetricFamily batch =
      family("flotilla_batch_width", "Forward passes, by how many sequences were in them.",
             MetricType::Histogram);

  void add_replica(const PoolRuntime& pool, const cluster::ReplicaStatus& replica) {
    const Labels labels{{"pool", pool.alias()}, {"replica", replica.node.str()}};
    add(up, labels, replica.live ? 1 : 0);
    add(busy, labels, replica.busy_count);
    add(restarts, labels, replica.restarts);
    if (!replica.live) return;
    add(width, labels, replica.info.width);
    add(speed, labels, replica.tokens_per_s);
    if (replica.info.external) return;
    add(memory, labels, static_cast<double>(replica.resident_bytes));
    add(overhead, labels, replica.step_overhead);
    if (const auto launch = pool.find_live(replica.index)) {
      const api::PassCounts& counts = launch->told.passes;
      add(generated, labels, static_cast<double>(launch->told.generated_tokens));
      add(prompts, labels, static_cast<double>(launch->told.prompt_tokens));
      add(cached, labels, static_cast<double>(launch->told.cached_tokens));
      add(stored, labels, static_cast<double>(launch->told.stored_bytes));
      add(on_disk, labels, static_cast<double>(launch->told.disk_bytes));
      add(conversations, labels, launch->told.stored);
      if (const api::RunnerDrafts& drafts = launch->told.drafts; !drafts.mode.empty()) {
        add(drafted, labels, static_cast<double>(drafts.drafted_tokens));
        add(accepted, labels, static_cast<double>(drafts.accepted_tokens));
      }
      add_histogram(steps, labels, counts.by_ms, api::PassCounts::kMsEdges, 0.001,
                    counts.ms_sum / 1000);
      add_histogram(batch, labels, counts.by_width, api::PassCounts::kWidthEdges, 1,
                    static_cast<double>(counts.width_sum));
    }
  }

  void add_pool(const PoolRuntime& pool) {
    const auto now = pool.brain().snapshot(pool.now());
    const Labels labels{{"pool", pool.alias()}};
    add(queue, labels, static_cast<double>(now.queue_depth));
    add(live, labels, now.replicas_live);
    add(total, labels, now.replicas_total);
    // One series a node: of two replicas there (one drains while its successor starts) the newer's.
    std::set<NodeId> shown;
    for (const auto& replica : std::views::reverse(now.replicas)) {
      if (replica.state == cluster::ReplicaState::Stopped) continue;
      if (shown.insert(replica.node).second) add_replica(pool, replica);
    }
  }

  std::vector<MetricFamily> take() {
    return {std::move(queue),    std::move(live),    std::move(total),         std::move(up),
            std::move(busy),     std::move(width),   std::move(speed),         std::move(memory),
            std::move(overhead), std::move(stored),  std::move(conversations), std::move(restarts),
            std::move(steps),    std::move(batch),   std::move(generated),     std::move(prompts),
            std::move(cached),   std::move(on_disk), std::move(drafted),       std::move(accepted)};
  }
};

MetricFamily gauge(const char* name, const char* help, const Labels& labels, double value) {
  MetricFamily out = family(name, help, MetricType::Gauge);
  add(out, labels, value);
  return out;
}

}  // namespace

std::string metrics_text(const Metrics& counted, const Control& control, std::string_view version) {
  std::vector<MetricFamily> families = counted.collect();
  Now now;
  for (const auto& pool : control.pools()) now.add_pool(*pool);
  for (MetricFamily& part : now.take()) families.push_back(std::move(part));
  families.push_back(gauge("flotilla_build_info", "1; the version is its label.",
                           {{"version", std::string(version)}}, 1));
  const auto memory = platform::resident_bytes(platform::own_pid());
  families.push_back(gauge("process_resident_memory_bytes", "Memory of the gateway.", {},
                           static_cast<double>(memory.value_or(0))));
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace flotilla::gateway
