#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/request_record.h"
#include "base/clock.h"
#include "base/random.h"
#include "cluster/actions.h"
#include "cluster/ticket.h"

namespace flotilla::gateway {

class Metrics;

// "req-" and 24 hex digits of the system's randomness. Who may look at a request is checked, but of
// those without a key many may come from one address: an id is not to be guessed from another.
std::string make_request_id();

// What happens to one request, written down as it happens. I/O thread only.
class RequestTrace {
 public:
  // `metrics` outlives it; none: nothing is counted.
  RequestTrace(const Clock& clock, Metrics* metrics, api::RequestRecord record);

  const std::string& id() const { return record_.id; }
  // As it stands now.
  const api::RequestRecord& record();
  bool live() const { return record_.phase != "ended"; }

  void describe(const std::string& model, bool stream);
  void enters(const std::string& pool, const std::string& owner) {
    pool_ = pool;
    record_.owner = owner;
  }
  void queued();
  void dispatched(const std::string& node, cluster::Why why);
  // Pieces of the answer were passed on, `tokens` of it so far.
  void shown(std::uint64_t tokens);
  void prompt_passes(int passes) { record_.prompt_passes = passes; }
  void lost(const std::string& reason);
  void ended(int status, std::string how, const cluster::Usage& usage);

  // Ends the request from outside; set while somebody can. false: it has ended.
  void on_cancel(std::function<void()> cancel) { cancel_ = std::move(cancel); }
  bool cancel();

 private:
  double since_arrival() const;
  void note(const char* what, std::string detail = {});

  const Clock& clock_;
  Metrics* metrics_;
  const Instant arrived_;
  std::string pool_;  // its alias, once found
  api::RequestRecord record_;
  Instant last_piece_{};
  std::uint64_t lost_tokens_ = 0;  // that came from replicas which were lost
  std::function<void()> cancel_;
};

// The last 10,000 requests. Those under way stay while there are others to forget. I/O thread only.
class RequestLog {
 public:
  explicit RequestLog(const Clock& clock, Metrics* metrics = nullptr)
      : clock_(clock), metrics_(metrics) {}
  std::shared_ptr<RequestTrace> begin(api::RequestRecord record);
  std::shared_ptr<RequestTrace> find(const std::string& id) const;
  // Newest first.
  std::vector<std::shared_ptr<RequestTrace>> recent(std::size_t most) const;

 private:
  const Clock& clock_;
  Metrics* metrics_;
  std::deque<std::shared_ptr<RequestTrace>> traces_;
  std::unordered_map<std::string, std::shared_ptr<RequestTrace>> by_id_;
};

}  // namespace flotilla::gateway
