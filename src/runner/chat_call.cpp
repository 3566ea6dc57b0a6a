#include "runner/chat_call.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/runner_protocol.h"

namespace flotilla::runner {
namespace {

api::AnswerHead make_head(const CallHeaders& headers, const Clock& clock, const std::string& alias,
                          const std::string& asked) {
  return {.id = "chatcmpl-" + headers.request_id,
          .created = headers.created.value_or(clock.unix_ms() / 1000),
          .model = headers.protocol ? (headers.alias.empty() ? asked : headers.alias) : alias};
}

}  // namespace

ChatCall::ChatCall(const Context& context, PreparedChat chat, const CallHeaders& headers)
    : context_(context),
      chat_(std::move(chat)),
      protocol_(headers.protocol),
      headers_(headers),
      head_(make_head(headers, context.clock, context.tools->alias, chat_.request.model)),
      writer_(head_, chat_.request.include_usage),
      choices_(static_cast<std::size_t>(chat_.request.n)),
      timer_(context.executor) {
  whole_.begin(head_);
}

ChatCall::~ChatCall() { end_sequences(); }

void ChatCall::end_sequences() {
  for (Choice& choice : choices_) {
    if (choice.id) context_.sequences->remove(*choice.id);
    choice.id.reset();
  }
}

// false: the runner is full; what was started is ended by the destructor.
bool ChatCall::start() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    const int index = static_cast<int>(i);
    AnswerSpec& answer = chat_.answers[i];
    tokens_given_ += static_cast<std::int64_t>(answer.given.size());
    choice.role_shown = chat_.resume.tokens.contains(index);
    choice.finished = chat_.resume.finished.contains(index);
    if (choice.finished) continue;
    SequenceStart start{.id = 0,
                        .request = headers_.request_id,
                        .prompt = chat_.prompt_of(index),
                        .answer = std::move(answer),
                        .cache_group = headers_.cache_group,
                        .keep = chat_.is_first(index),
                        .counts_prompt = chat_.is_first(index)};
    std::unique_ptr<engine::Grammar> grammar;
    if (!chat_.grammars.empty()) grammar = std::move(chat_.grammars[i]);
    choice.id = context_.sequences->start(std::move(start), *this, index, std::move(grammar));
    if (!choice.id) return false;
    ++running_;
  }
  tokens_ = tokens_given_;
  if (running_ == 0) write_end();  // only the end of the stream was lost
  return true;
}

Awaitable<void> ChatCall::run() {
  if (!start()) {
    const Error full{.code = Code::ResourceExhausted,
                     .message = "the runner holds as many requests as it can; try again later",
                     .reason = "runner_full",
                     .retry_after_s = 1};
    co_await refuse(full);
  } else if (streams()) {
    co_await stream();
  } else {
    co_await collect();
  }
}

Awaitable<void> ChatCall::stream() {
  const http::Headers headers{{"Content-Type", "text/event-stream"},
                              {"Cache-Control", "no-cache"},
                              {"X-Accel-Buffering", "no"},
                              {"X-Request-Id", headers_.request_id}};
  Instant silent_since = context_.clock.now();
  while (!gone_) {
    if (any_unread() && !failed_) co_await read_answers();
    if (failed_) {
      if (!context_.exchange.started()) {
        co_await refuse(*failed_);
        co_return;
      }
      pending_ += api::openai_error_event(*failed_);
      ended_ = true;
      failed_.reset();
    }
    if (!pending_.empty()) {
      std::swap(writing_, pending_);
      pending_.clear();
      bool taken = false;
      if (!context_.exchange.started()) {
        taken = co_await context_.exchange.start(200, headers, writing_);
      } else if (ended_) {
        co_await context_.exchange.finish(writing_);
        co_return;
      } else {
        taken = co_await context_.exchange.write(writing_);
      }
      if (!taken) co_return;
      writing_.clear();
      unpark_if_taken();
      silent_since = context_.clock.now();
    } else if (ended_) {
      co_await context_.exchange.finish();
      co_return;
    } else {
      const Instant speak = silent_since + context_.options.keep_alive;
      co_await wait(std::min(speak, deadline()));
      const Instant now = context_.clock.now();
      check_deadlines(now);
      if (now >= speak && pending_.empty() && !failed_) pending_ = ": keep-alive\n\n";
    }
  }
}

Awaitable<void> ChatCall::collect() {
  while (!gone_ && !ended_ && !failed_) {
    co_await wait(deadline());
    check_deadlines(context_.clock.now());
    // In parts only where somebody sees them.
    const bool all_here =
        std::ranges::all_of(choices_, [](const Choice& c) { return c.finished || c.come.ending; });
    if (all_here && !failed_) co_await read_answers();
  }
  if (gone_) co_return;
  if (failed_) {
    co_await refuse(*failed_);
    co_return;
  }
  http::Response response = http::json_response(200, whole_.answer());
  response.headers.set("X-Request-Id", headers_.request_id);
  co_await context_.exchange.respond(std::move(response));
}

Awaitable<void> ChatCall::refuse(const Error& error) {
  end_sequences();
  http::Response response =
      http::json_response(api::http_status(error.code), api::openai_error_body(error));
  response.headers.set("X-Request-Id", headers_.request_id);
  if (error.retry_after_s > 0) {
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  }
  co_await context_.exchange.respond(std::move(response));
}

// Until wake() or `until`. What would have woken it before is looked at by the caller: nothing
// happens between that look and this wait, since one thread runs both.
Awaitable<void> ChatCall::wait(Instant until) {
  timer_.expires_at(until);
  co_await timer_.async_wait(kAwait);
}

void ChatCall::wake() { timer_.cancel(); }

void ChatCall::abandon() {
  gone_ = true;
  end_sequences();
  wake();
}

void ChatCall::on_event(int choice, SequenceEvent event) {
  Choice& of = choices_[static_cast<std::size_t>(choice)];
  if (event.finish || event.error) of.id.reset();
  if (gone_ || failed_ || ended_) return;
  if (event.error) return fail(std::move(*event.error));
  last_token_ = context_.clock.now();
  if (!first_token_) {
    first_token_ = last_token_;
    prompt_ms_ = event.prompt_ms;
    prompt_passes_ = event.prompt_passes;
  }
  if (chat_.is_first(choice) && !std::exchange(of.begun, true))
    cached_tokens_ += std::min<std::int64_t>(event.cached_tokens, chat_.prompt_of(choice).size());
  tokens_ += static_cast<std::int64_t>(event.tokens.size());
  Part part{.text = std::move(event.text),
            .tokens = std::move(event.tokens),
            .logprobs = {},
            .ending = event.finish,
            .stop = std::move(event.stop)};
  for (const auto& logprob : event.logprobs) part.logprobs.push_back(told(logprob));
  if (chat_.deltas.empty()) {
    api::ChatDelta delta;
    delta.content = std::exchange(part.text, {});
    put(choice, std::move(delta), std::move(part));
  } else {
    of.come.add(std::move(part));
    of.fresh = true;
  }
  park_if_slow();
  wake();
}

void ChatCall::Part::add(Part more) {
  text += more.text;
  tokens.insert(tokens.end(), more.tokens.begin(), more.tokens.end());
  std::ranges::move(more.logprobs, std::back_inserter(logprobs));
  if (more.ending) ending = more.ending;
  if (!more.stop.empty()) stop = std::move(more.stop);
}

api::TokenLogprob ChatCall::told(const engine::ChosenLogprob& logprob) const {
  const engine::Tokenizer& tokenizer = *context_.tools->tokenizer;
  api::TokenLogprob out{.bytes = tokenizer.piece(logprob.chosen.token),
                        .logprob = logprob.chosen.logprob};
  for (const engine::TokenLogprob& top : logprob.top) {
    out.top.emplace_back(tokenizer.written(top.token), top.logprob);
  }
  return out;
}

bool ChatCall::any_unread() const {
  return std::ranges::any_of(choices_, [](const Choice& choice) { return choice.fresh; });
}

namespace {

struct Read {
  std::shared_ptr<MessageDeltas> deltas;
  std::string text;
  bool last;

  api::ChatDelta operator()() const { return deltas->take(text, last); }
};

}  // namespace

// What has come of each choice, one after the other. More may come while one is read.
Awaitable<void> ChatCall::read_answers() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (!std::exchange(choice.fresh, false)) continue;
    Part part = std::exchange(choice.come, {});
    Read read{.deltas = chat_.deltas[i], .text = part.text, .last = part.ending.has_value()};
    api::ChatDelta delta = co_await context_.text.run(std::move(read));
    if (gone_ || failed_) co_return;
    put(static_cast<int>(i), std::move(delta), std::move(part));
  }
}

// Shows what a part of the answer adds to the message. Its tokens are told with the next text that
// is shown, so that they always stand for what the client has.
void ChatCall::put(int choice, api::ChatDelta delta, Part part) {
  Choice& of = choices_[static_cast<std::size_t>(choice)];
  of.held.add(std::move(part));
  if (delta.empty() && !of.held.ending) return;
  part = std::exchange(of.held, {});
  delta.logprobs = std::move(part.logprobs);
  // The template's own are none of the client's business.
  const auto& stops = chat_.request.stop;
  if (std::ranges::find(stops, part.stop) != stops.end()) delta.stop = std::move(part.stop);
  if (part.ending) {
    of.finished = true;
    --running_;
  }
  if (streams()) {
    write(choice, delta, part);
  } else {
    if (!std::exchange(of.role_shown, true)) {
      api::ChatDelta echo;
      echo.content = chat_.echo_of(choice);
      whole_.add(choice, echo);
    }
    whole_.add(choice, delta);
    if (part.ending) whole_.finish_choice(choice, reason_of(choice, *part.ending));
  }
  if (running_ == 0) write_end();
}

void ChatCall::write(int choice, const api::ChatDelta& delta, const Part& part) {
  Choice& of = choices_[static_cast<std::size_t>(choice)];
  if (protocol_ && !std::exchange(usage_told_, true)) tell_usage();
  if (!of.role_shown) {
    const api::Usage so_far = usage();
    writer_.role(pending_, choice, chat_.echo_of(choice),
                 chat_.request.early_usage ? &so_far : nullptr);
  }
  of.role_shown = true;
  if (protocol_ && !part.tokens.empty()) api::append_token_comment(pending_, choice, part.tokens);
  if (!part.ending) {
    writer_.delta(pending_, choice, delta);
    return;
  }
  const bool last = running_ == 0 && !chat_.request.include_usage;
  const api::ServedBy by = last ? served() : api::ServedBy{};
  writer_.finish(pending_, choice, delta, reason_of(choice, *part.ending), last ? &by : nullptr);
}

std::string_view ChatCall::reason_of(int choice, FinishReason ending) const {
  const bool calls = ending == FinishReason::Stop && !chat_.deltas.empty() &&
                     chat_.deltas[static_cast<std::size_t>(choice)]->has_calls();
  return calls ? "tool_calls" : to_string(ending);
}

void ChatCall::write_end() {
  ended_ = true;
  if (!streams()) {
    whole_.set_usage(usage(), served());
    return;
  }
  if (chat_.request.include_usage) writer_.usage(pending_, usage(), served());
  if (protocol_) tell_usage();
  pending_ += api::kSseDone;
}

void ChatCall::tell_usage() {
  pending_ += api::usage_comment({.usage = usage(),
                                  .ttft_ms = served().ttft_ms,
                                  .tokens_per_s = tokens_per_s(),
                                  .prompt_ms = prompt_ms_,
                                  .prompt_passes = prompt_passes_});
}

void ChatCall::fail(Error error) {
  failed_ = std::move(error);
  end_sequences();
  wake();
}

void ChatCall::park_if_slow() {
  if (parked_ || !streams() || pending_.size() + writing_.size() <= context_.options.park_above)
    return;
  parked_ = true;
  for (const Choice& choice : choices_) {
    if (choice.id) context_.sequences->park(*choice.id);
  }
}

void ChatCall::unpark_if_taken() {
  if (!parked_ || pending_.size() + writing_.size() >= context_.options.unpark_below) return;
  parked_ = false;
  for (const Choice& choice : choices_) {
    if (choice.id) context_.sequences->unpark(*choice.id);
  }
}

Instant ChatCall::deadline() const {
  Instant earliest = Instant::max();
  if (headers_.first_token_within && !first_token_) {
    earliest = context_.arrived + *headers_.first_token_within;
  }
  if (chat_.request.timeout_s) {
    const std::chrono::duration<double, std::milli> queued(headers_.queued_ms);
    const std::chrono::duration<double> whole(*chat_.request.timeout_s);
    earliest =
        std::min(earliest, context_.arrived + std::chrono::duration_cast<Duration>(whole - queued));
  }
  return earliest;
}

void ChatCall::check_deadlines(Instant now) {
  if (now < deadline() || ended_ || failed_) return;
  const bool whole = !headers_.first_token_within || first_token_;
  fail({.code = Code::DeadlineExceeded,
        .message =
            whole ? fmt::format("the answer was not complete within timeout_s = {} s",
                                chat_.request.timeout_s.value_or(0))
                  : fmt::format("no token within {:.0f} ms", to_ms(*headers_.first_token_within)),
        .param = whole ? "timeout_s" : ""});
}

api::Usage ChatCall::usage() const {
  return {.prompt_tokens = static_cast<std::int64_t>(chat_.prompt_tokens()),
          .completion_tokens = tokens_,
          .cached_tokens = cached_tokens_};
}

api::ServedBy ChatCall::served() const {
  const Instant first = first_token_.value_or(context_.clock.now());
  return {.node = headers_.node,
          .replica = headers_.node,
          .queued_ms = headers_.queued_ms,
          .ttft_ms = to_ms(first - context_.arrived),
          .tokens_per_s = tokens_per_s(),
          .resumed = headers_.resume_bytes > 0,
          .cached_tokens = cached_tokens_};
}

// Of all choices together, between their first and their last token.
double ChatCall::tokens_per_s() const {
  if (!first_token_ || last_token_ <= *first_token_) return 0;
  return static_cast<double>(tokens_ - tokens_given_ - 1) / to_s(last_token_ - *first_token_);
}

}  // namespace flotilla::runner
