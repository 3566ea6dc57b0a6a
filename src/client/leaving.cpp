#include "client/leaving.h"

#include <fmt/format.h>

namespace flotilla::client {
namespace {

constexpr int kClients = 16;    // more than most servers run at once
constexpr int kTokens = 2000;   // of each, were it awaited: many seconds
constexpr double kFactor = 10;  // a small request's time after them / alone
constexpr double kGraceMs = 3000;

Awaitable<std::string> leave_and_look(Asker& asker, Leave when) {
  const Question small{.text = "Say hi.", .max_tokens = 5};
  const Heard alone = co_await asker.ask(small);
  if (!alone.answer.fault.empty()) co_return alone.answer.fault;
  Question endless{.text = "Count from one to ten thousand in words.",
                   .max_tokens = kTokens,
                   .temperature = 0.5};
  co_await asker.ask_and_leave(std::move(endless), kClients, when);
  const Heard after = co_await asker.ask(small);
  if (!after.answer.fault.empty()) co_return after.answer.fault;
  if (after.ms <= kFactor * alone.ms + kGraceMs) co_return std::string();
  co_return fmt::format("a small request took {:.1f} s after {} clients went away, {:.1f} s before",
                        after.ms / 1000, kClients, alone.ms / 1000);
}

}  // namespace

Awaitable<std::string> leave_before_the_answer(Asker& asker) {
  return leave_and_look(asker, Leave::BeforeTheAnswer);
}
Awaitable<std::string> leave_at_the_head(Asker& asker) {
  return leave_and_look(asker, Leave::AtItsHead);
}
Awaitable<std::string> leave_midway(Asker& asker) { return leave_and_look(asker, Leave::Midway); }
Awaitable<std::string> leave_before_the_whole_answer(Asker& asker) {
  return leave_and_look(asker, Leave::BeforeTheWholeAnswer);
}

Awaitable<std::string> ask_for_more_than_the_context(Asker& asker) {
  http::Request request = asker.chat_request(
      {.text = "Say hi.", .max_tokens = 10'000'000, .temperature = 0, .seed = 1, .stream = true});
  const Instant begin = asker.clock().now();
  const auto status = co_await asker.status_of(std::move(request));
  const double seconds = to_s(asker.clock().now() - begin);
  if (!status) co_return status.error().message;
  if (*status != 200 && *status != 400) {
    co_return fmt::format("status {}, wanted 200 or 400", *status);
  }
  if (seconds <= 10) co_return std::string();
  co_return fmt::format("the head took {:.1f} s", seconds);
}

}  // namespace flotilla::client
