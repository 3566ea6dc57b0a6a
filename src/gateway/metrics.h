#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/ticket.h"

namespace prometheus {
class Histogram;
struct MetricFamily;
}  // namespace prometheus

namespace flotilla::gateway {

// Counts and durations for /metrics, as they happen. Labels are the aliases of pools and the ids of
// nodes, never what a client wrote; of each figure, series beyond kSeriesMax count as "other".
// I/O thread only.
class Metrics {
 public:
  static constexpr std::size_t kSeriesMax = 1024;

  Metrics();
  ~Metrics();

  void dispatched(const std::string& pool, const std::string& replica, double queued_s);
  // One replica's answers, for whoever tells of each token: no search at each. Valid as long as
  // the Metrics.
  class Answers {
   public:
    void first_token(double s) const;
    void token_gap(double s) const;

   private:
    friend class Metrics;
    prometheus::Histogram* ttft_ = nullptr;
    prometheus::Histogram* gaps_ = nullptr;
  };
  Answers answers_of(const std::string& pool, const std::string& replica);
  // A replica was lost with a request in it, of whose answer `generated` tokens had come from it;
  // `begun`: the client had a part of the answer.
  struct Loss {
    std::string pool;
    std::string replica;
    bool begun = false;
    std::uint64_t generated = 0;
  };
  void failed_over(const Loss& loss);
  // `pool` is empty for a request that named none, `status` 0 for a client that went away. `usage`
  // has not the tokens that came from replicas which were lost.
  struct End {
    std::string pool;
    std::string replica;
    int status = 0;
    double took_s = 0;
    cluster::Usage usage;
  };
  void ended(const End& end);

  std::vector<prometheus::MetricFamily> collect() const;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace flotilla::gateway
