#include "gateway/request_log.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/trace_context.h"
#include "base/log_line.h"
#include "gateway/metrics.h"

namespace flotilla::gateway {
namespace {

constexpr int kIdBytes = 12;
constexpr std::size_t kTracesMax = 10'000;
constexpr std::size_t kMomentsMax = 64;
constexpr std::size_t kModelMax = 200;
// A pause between two pieces that a reader notices; a step's own target is far below it.
constexpr Duration kGap = std::chrono::milliseconds(250);

// The W3C trace that the request is of.
std::string trace_id_of(const api::RequestRecord& record) {
  const auto traced = std::ranges::find(record.moments, "traced", &api::RequestMoment::what);
  return traced == record.moments.end()
             ? std::string()
             : std::string(api::TraceContext{.traceparent = traced->detail}.trace_id());
}

// A refusal's words may quote the request, so only its status is told.
void write_log(const api::RequestRecord& record, const std::string& pool) {
  if (!log::enabled(log::Level::Info)) return;
  log::Fields fields = log::of_request(record.id);
  fields.add("status", record.status);
  if (!pool.empty()) fields.add("pool", pool);
  if (!record.node.empty()) fields.add("node", record.node);
  fields.add("took_ms", std::round(record.took_ms)).add("queued_ms", std::round(record.queued_ms));
  if (record.ttft_ms) fields.add("ttft_ms", std::round(*record.ttft_ms));
  fields.add("prompt_tokens", record.prompt_tokens)
      .add("completion_tokens", record.completion_tokens);
  if (record.retries > 0) fields.add("retries", record.retries);
  if (const std::string trace = trace_id_of(record); !trace.empty()) fields.add("trace_id", trace);
  log::info(fields, "request ended");
}

}  // namespace

std::string make_request_id() { return "req-" + random_hex(kIdBytes); }

RequestTrace::RequestTrace(const Clock& clock, Metrics* metrics, api::RequestRecord record)
    : clock_(clock), metrics_(metrics), arrived_(clock.now()), record_(std::move(record)) {
  record_.arrived_unix_ms = clock.unix_ms();
}

double RequestTrace::since_arrival() const { return to_ms(clock_.now() - arrived_); }

const api::RequestRecord& RequestTrace::record() {
  if (live()) record_.took_ms = since_arrival();
  return record_;
}

// The last place is for the end.
void RequestTrace::note(const char* what, std::string detail) {
  if (record_.moments.size() >= kMomentsMax) record_.moments.pop_back();
  record_.moments.push_back({.at_ms = since_arrival(), .what = what, .detail = std::move(detail)});
}

void RequestTrace::describe(const std::string& model, bool stream) {
  record_.model = model.substr(0, kModelMax);
  record_.stream = stream;
}

void RequestTrace::queued() { note("queued"); }

void RequestTrace::dispatched(const std::string& node, cluster::Why why) {
  note("dispatched", fmt::format("{}: {}", node, cluster::to_string(why)));
  record_.node = node;
  record_.phase = "prefilling";
  record_.queued_ms = record_.moments.back().at_ms;
  last_piece_ = Instant{};
  if (metrics_ != nullptr && record_.retries == 0) {
    metrics_->dispatched(pool_, node, record_.queued_ms / 1000);
  }
}

void RequestTrace::shown(std::uint64_t tokens) {
  const Instant now = clock_.now();
  if (last_piece_ == Instant{}) {
    record_.phase = "answering";
    if (!record_.ttft_ms) record_.ttft_ms = to_ms(now - arrived_);
    note(record_.resumed ? "resumed" : "first_token");
  } else if (now - last_piece_ >= kGap) {
    ++record_.gaps;
    record_.gap_max_ms = std::max(record_.gap_max_ms, to_ms(now - last_piece_));
    note("gap", fmt::format("{:.0f} ms", to_ms(now - last_piece_)));
  }
  last_piece_ = now;
  record_.completion_tokens = tokens;
}

void RequestTrace::lost(const std::string& reason) {
  note("lost", reason);
  if (metrics_ != nullptr) {
    metrics_->failed_over({.pool = pool_,
                           .replica = record_.node,
                           .begun = record_.phase == "answering",
                           .generated = record_.completion_tokens - lost_tokens_});
  }
  lost_tokens_ = record_.completion_tokens;
  ++record_.retries;
  record_.resumed = record_.resumed || record_.phase == "answering";
  record_.phase = "queued";
}

void RequestTrace::ended(int status, std::string how, const cluster::Usage& usage) {
  if (!live()) return;
  note("ended", how);
  record_.took_ms = record_.moments.back().at_ms;
  record_.phase = "ended";
  record_.status = status;
  record_.end = std::move(how);
  if (usage.prompt_tokens + usage.completion_tokens > 0) {
    record_.prompt_tokens = usage.prompt_tokens;
    record_.cached_tokens = usage.cached_tokens;
    record_.completion_tokens = usage.completion_tokens;
  }
  if (metrics_ != nullptr) {
    cluster::Usage rest = usage;
    rest.completion_tokens -= std::min(lost_tokens_, usage.completion_tokens);
    metrics_->ended({.pool = pool_,
                     .replica = record_.node,
                     .status = status,
                     .took_s = record_.took_ms / 1000,
                     .usage = rest});
  }
  record_.moments.shrink_to_fit();
  cancel_ = nullptr;
  write_log(record_, pool_);
}

bool RequestTrace::cancel() {
  if (!live() || !cancel_) return false;
  const auto cancel = cancel_;
  cancel();
  return true;
}

std::shared_ptr<RequestTrace> RequestLog::begin(api::RequestRecord record) {
  auto trace = std::make_shared<RequestTrace>(clock_, metrics_, std::move(record));
  traces_.push_back(trace);
  by_id_[trace->id()] = trace;
  if (traces_.size() > kTracesMax) {
    auto oldest = std::ranges::find_if(traces_, [](const auto& one) { return !one->live(); });
    if (oldest == traces_.end()) oldest = traces_.begin();
    by_id_.erase((*oldest)->id());
    traces_.erase(oldest);
  }
  return trace;
}

std::shared_ptr<RequestTrace> RequestLog::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<RequestTrace>> RequestLog::recent(std::size_t most) const {
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, traces_.size()));
  return {traces_.rbegin(), traces_.rbegin() + count};
}

}  // namespace flotilla::gateway
