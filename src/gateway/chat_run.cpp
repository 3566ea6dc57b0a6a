#include "gateway/chat_run.h"

#include <fmt/format.h>

#include "base/log_line.h"

namespace flotilla::gateway {

ChatRun::ChatRun(http::Exchange& exchange, const Executor& executor, Options options)
    : exchange_(exchange),
      options_(std::move(options)),
      answer_(exchange, options_.job.stream, std::move(options_.headers)),
      admission_(options_.pool, executor, options_.job.trace, options_.id,
                 [this] { return answer_.keep_alive(); }) {
  // Wherever the request is, its going away is noticed there: waiting, or in a replica.
  exchange_.on_client_gone([this] { cut(); });
  options_.job.trace->on_cancel([this] {
    cancelled_ = true;
    cut();
  });
}

ChatRun::~ChatRun() {
  const cluster::Usage& usage = options_.job.usage;
  options_.job.lease.settle(usage.prompt_tokens, usage.completion_tokens, options_.clock->now());
  options_.job.pace.prompt(usage.prompt_tokens, usage.cached_tokens);
  options_.tally->add(options_.spender, usage, options_.clock->unix_ms() / 1000);
  options_.job.trace->on_cancel(nullptr);
  options_.job.trace->ended(answer_.status(), "the client went away", options_.job.usage);
}

void ChatRun::cut() {
  admission_.client_gone();
  if (upstream_) upstream_->cut();
}

// The error is the client's answer, unless nobody is there to read it.
Awaitable<void> ChatRun::end_with(Error error) {
  const auto& trace = options_.job.trace;
  if (cancelled_) {
    error = Error{.code = Code::Cancelled,
                  .message = "the request was cancelled by an administrator",
                  .reason = "cancelled"};
  }
  const std::string how = error.reason.empty() ? error.message : error.reason;
  if (error.code == Code::Cancelled && !cancelled_) co_return;
  co_await answer_.fail(std::move(error));
  trace->ended(answer_.status(), how, options_.job.usage);
}

Awaitable<RelayEnd> ChatRun::relay(LaunchRuntime& place) {
  options_.job.queued_ms = to_ms(options_.clock->now() - options_.job.arrived);
  const std::function<void()> on_first_byte = [this] { admission_.first_byte(); };
  options_.job.pace.in_replica(place.node.str());
  upstream_ = std::make_unique<Upstream>();
  if (options_.job.embeddings) {
    co_return co_await relay_embeddings(options_.job, answer_, place, *upstream_, on_first_byte,
                                        *options_.clock);
  }
  if (place.engine) {
    // The pool sends it to none: what the client has already would come once more.
    if (options_.job.begun) co_return failed(too_early("replica"));
    co_return co_await relay_foreign(options_.job, answer_, place, *upstream_, on_first_byte,
                                     *options_.clock);
  }
  co_return co_await relay_runner(options_.job, answer_, place, *upstream_, on_first_byte,
                                  *options_.clock);
}

// While a request waits its key may be taken back, run out or be bound to other models. What has
// begun goes on.
Result<Admission::Place> ChatRun::look_again(Result<Admission::Place> place) {
  if (!place || options_.job.begun) return place;
  const auto may = options_.may_still(*options_.pool);
  if (may) return place;
  admission_.release(cluster::Outcome::Cancelled, {});
  return ::flotilla::fail(may.error());
}

Awaitable<void> ChatRun::run() {
  using Kind = RelayEnd::Kind;
  ChatJob& job = options_.job;
  const std::string key = options_.ticket.key;
  auto place = co_await admission_.enter(std::move(options_.ticket));
  for (;;) {
    place = look_again(std::move(place));
    if (!place) {
      Error error = place.error();
      if (error.reason == "poison") options_.refusals->add(key, job.body, options_.clock->now());
      co_await end_with(std::move(error));
      co_return;
    }
    RelayEnd end = co_await relay(**place);
    if (exchange_.client_gone() || cancelled_) end.kind = Kind::ClientGone;
    switch (end.kind) {
      case Kind::Whole:
        admission_.release(cluster::Outcome::Completed, job.usage);
        co_await answer_.finish();
        job.trace->ended(answer_.status(), "completed", job.usage);
        co_return;
      case Kind::Refused:
        admission_.release(cluster::Outcome::RequestFault, {});
        co_await answer_.refuse(std::move(end.response));
        job.trace->ended(answer_.status(), end.error.message, job.usage);
        co_return;
      case Kind::Error:
        admission_.release(cluster::Outcome::RequestFault, job.usage);
        co_await end_with(std::move(end.error));
        co_return;
      case Kind::ClientGone:
        admission_.release(cluster::Outcome::Cancelled, job.usage);
        if (cancelled_) {
          Error nobody;
          co_await end_with(std::move(nobody));
        }
        co_return;
      case Kind::Failed: break;
    }
    log::info(log::of_request(job.request_id),
              "{} failed a request ({}), {} shown; another replica takes it", (*place)->node.str(),
              (*place)->engine ? "its own error" : end.error.message,  // may quote the request
              job.begun ? "a part was" : "nothing was");
    job.trace->lost(fmt::format("{}: {}", (*place)->node.str(), end.error.message));
    if (job.begun && (*place)->engine) {
      admission_.release(cluster::Outcome::LostAfterFirstByte, job.usage);
      Error lost{
          .code = Code::Unavailable,
          .message =
              "the replica was lost in the middle of the answer, and its engine cannot go on "
              "elsewhere; send the request again",
          .reason = "replica_lost"};
      co_await end_with(std::move(lost));
      co_return;
    }
    const auto outcome =
        job.begun ? cluster::Outcome::LostAfterFirstByte : cluster::Outcome::FailedBeforeFirstByte;
    const Instant deadline =
        job.begun ? options_.clock->now() + options_.first_token_limit : job.deadline;
    place = co_await admission_.retry(outcome, deadline);
  }
}

}  // namespace flotilla::gateway
