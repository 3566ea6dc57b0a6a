#pragma once

#include <functional>

#include "api/openai.h"
#include "gateway/admission.h"
#include "gateway/refusals.h"
#include "gateway/relay.h"
#include "gateway/usage_tally.h"

namespace flotilla::gateway {

// One chat request from its admission to its end: a place, the relay, and another place when the
// replica was lost, until the answer is whole. The client sees one unbroken answer or one clear
// error.
class ChatRun {
 public:
  struct Options {
    std::shared_ptr<PoolRuntime> pool;
    cluster::TicketId id{};
    cluster::Ticket ticket;
    Duration first_token_limit{};  // REQUEST_DEADLINE_S, counted anew after each loss
    ChatJob job;
    http::Headers headers;  // of the answer
    UsageTally::Spender spender;
    UsageTally* tally = nullptr;  // gets what the request came to, at its end
    const Clock* clock = nullptr;
    Refusals* refusals = nullptr;  // where a request goes that crashed two runners
    // Whether what let it in holds yet: asked each time that it gets a place, until it begins.
    std::function<Result<void>(const PoolRuntime& pool)> may_still;
  };
  ChatRun(http::Exchange& exchange, const Executor& executor, Options options);
  ChatRun(const ChatRun&) = delete;
  ChatRun& operator=(const ChatRun&) = delete;
  ~ChatRun();

  Awaitable<void> run();

 private:
  Awaitable<RelayEnd> relay(LaunchRuntime& place);
  Result<Admission::Place> look_again(Result<Admission::Place> place);
  Awaitable<void> end_with(Error error);
  void cut();

  http::Exchange& exchange_;
  Options options_;
  ChatAnswer answer_;
  Admission admission_;
  std::unique_ptr<Upstream> upstream_;  // of the replica that has the request
  bool cancelled_ = false;              // by an administrator
};

}  // namespace flotilla::gateway
