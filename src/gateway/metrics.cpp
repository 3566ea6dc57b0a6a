#include "gateway/metrics.h"

#include <map>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace flotilla::gateway {
namespace {

using prometheus::Counter;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// Up to the longest that REQUEST_DEADLINE_S allows by default.
const Buckets& wait_buckets() {
  static const Buckets edges{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                             2.5,   5,     10,   30,    60,   120, 300,  600};
  return edges;
}
const Buckets& gap_buckets() {
  static const Buckets edges{0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075,
                             0.1,   0.15,   0.25,  0.5,  1,    2.5,  10};
  return edges;
}

prometheus::Labels labels_of(const std::string& pool, const std::string& replica) {
  return {{"pool", pool}, {"replica", replica}};
}

// A pool and a replica of it.
struct Place {
  std::string pool;
  std::string replica;
};
struct PlaceView {
  std::string_view pool;
  std::string_view replica;
};
struct PlaceOrder {
  using is_transparent = void;
  static PlaceView view(const Place& place) { return {place.pool, place.replica}; }
  static PlaceView view(PlaceView place) { return place; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    const PlaceView x = view(a);
    const PlaceView y = view(b);
    return std::tie(x.pool, x.replica) < std::tie(y.pool, y.replica);
  }
};

template <class T>
class Family {
 public:
  explicit Family(prometheus::Family<T>& family) : family_(family) {}
  template <class... Args>
  T& at(prometheus::Labels labels, Args&&... args) {
    auto found = known_.find(labels);
    if (found == known_.end() && known_.size() >= Metrics::kSeriesMax) {
      for (auto& [name, value] : labels) value = "other";
      found = known_.find(labels);
    }
    if (found != known_.end()) return *found->second;
    T& made = family_.Add(labels, std::forward<Args>(args)...);
    known_.emplace(std::move(labels), &made);
    return made;
  }
  // The same for what each request asks of its replica: no labels are made to find it.
  template <class... Args>
  T& of(const std::string& pool, const std::string& replica, Args&&... args) {
    const auto found = places_.find(PlaceView{pool, replica});
    if (found != places_.end()) return *found->second;
    T& made = at(labels_of(pool, replica), std::forward<Args>(args)...);
    if (places_.size() < Metrics::kSeriesMax)
      places_.emplace(Place{.pool = pool, .replica = replica}, &made);
    return made;
  }

 private:
  prometheus::Family<T>& family_;
  std::map<prometheus::Labels, T*> known_;
  std::map<Place, T*, PlaceOrder> places_;
};

}  // namespace

struct Metrics::Series {
  prometheus::Registry registry;
  Family<Counter> counter(const char* name, const char* help) {
    return Family(prometheus::BuildCounter().Name(name).Help(help).Register(registry));
  }
  Family<Histogram> histogram(const char* name, const char* help) {
    return Family(prometheus::BuildHistogram().Name(name).Help(help).Register(registry));
  }

  Family<Counter> requests = counter(
      "flotilla_requests_total",
      "Requests that ended, by the status that the client got (0: it had gone away before).");
  Family<Histogram> took =
      histogram("flotilla_request_seconds", "From a request's arrival to its end.");
  Family<Histogram> queued =
      histogram("flotilla_queue_seconds", "From a request's arrival to its place in a replica.");
  Family<Histogram> ttft = histogram("flotilla_time_to_first_token_seconds",
                                     "From a request's arrival to the first token of its answer.");
  Family<Histogram> gaps =
      histogram("flotilla_inter_token_seconds", "Between two tokens of one answer.");
  Family<Counter> prompt =
      counter("flotilla_prompt_tokens_total", "Prompt tokens of requests that ended.");
  Family<Counter> cached =
      counter("flotilla_cached_prompt_tokens_total", "Prompt tokens that were not computed again.");
  Family<Counter> hits = counter("flotilla_cache_hits_total",
                                 "Requests of whose prompt a part was not computed again.");
  Family<Counter> generated =
      counter("flotilla_generated_tokens_total",
              "Tokens of answers that were passed on, by the replica that they came from.");
  Family<Counter> failovers =
      counter("flotilla_failovers_total",
              "Replicas lost with a request in them, before or after its first token was shown.");
};

Metrics::Metrics() : series_(std::make_unique<Series>()) {}
Metrics::~Metrics() = default;

void Metrics::dispatched(const std::string& pool, const std::string& replica, double queued_s) {
  series_->queued.of(pool, replica, wait_buckets()).Observe(queued_s);
}

void Metrics::Answers::first_token(double s) const { ttft_->Observe(s); }
void Metrics::Answers::token_gap(double s) const { gaps_->Observe(s); }

Metrics::Answers Metrics::answers_of(const std::string& pool, const std::string& replica) {
  Answers answers;
  answers.ttft_ = &series_->ttft.of(pool, replica, wait_buckets());
  answers.gaps_ = &series_->gaps.of(pool, replica, gap_buckets());
  return answers;
}

void Metrics::failed_over(const Loss& loss) {
  auto labels = labels_of(loss.pool, loss.replica);
  if (loss.generated > 0)
    series_->generated.at(labels).Increment(static_cast<double>(loss.generated));
  labels.emplace("phase", loss.begun ? "after_first_token" : "before_first_token");
  series_->failovers.at(std::move(labels)).Increment();
}

void Metrics::ended(const End& end) {
  prometheus::Labels by_status{{"pool", end.pool}, {"code", std::to_string(end.status)}};
  series_->requests.at(std::move(by_status)).Increment();
  if (end.pool.empty()) return;
  series_->took.at({{"pool", end.pool}}, wait_buckets()).Observe(end.took_s);
  if (end.usage.prompt_tokens + end.usage.completion_tokens == 0) return;
  const std::string& pool = end.pool;
  const std::string& replica = end.replica;
  const cluster::Usage& usage = end.usage;
  series_->prompt.of(pool, replica).Increment(static_cast<double>(usage.prompt_tokens));
  series_->cached.of(pool, replica).Increment(static_cast<double>(usage.cached_tokens));
  if (usage.cached_tokens > 0) series_->hits.of(pool, replica).Increment();
  series_->generated.of(pool, replica).Increment(static_cast<double>(usage.completion_tokens));
}

std::vector<prometheus::MetricFamily> Metrics::collect() const {
  return series_->registry.Collect();
}

}  // namespace flotilla::gateway
