#include "client/stall.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

namespace flotilla::client {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(5);
constexpr int kCalibrationSentences = 40;
constexpr int kLongAnswer = 8;
constexpr int kSmallAnswer = 16;

// Sentences of about the same number of tokens. Texts of different runs and kinds share no
// beginning, so that no cache of prefixes answers for the engine.
std::string text_of(std::uint64_t run, int kind, int sentences) {
  std::string text = fmt::format("List {}-{}. ", run, kind);
  for (int i = 0; i < sentences; ++i) {
    text += fmt::format("Ship {} sails from port {} with {} tons of grain on board. ",
                        1000 + (kind * 131 + i * 37) % 9000, 1000 + (kind * 17 + i * 53) % 9000,
                        1000 + (kind * 71 + i * 89) % 9000);
  }
  return text + "What do you think of it?";
}

// One measurement. Requests run as coroutines of their own and are counted here; the object lives
// until all are over.
class Stall {
 public:
  Stall(Executor executor, http::Client& client, const StallOptions& options, const Clock& clock)
      : executor_(std::move(executor)),
        client_(client),
        options_(options),
        clock_(clock),
        timer_(executor_) {
    seen_.streams.resize(static_cast<std::size_t>(options.streams));
    seen_.small.resize(static_cast<std::size_t>(options.small_requests));
  }

  Task<StallSeen> run() {
    const auto sentences = co_await find_sentences();
    if (!sentences) co_return fail(sentences.error());
    std::string text = text_of(options_.run, 3, *sentences);
    co_await answer(std::move(text), kLongAnswer, seen_.alone);
    if (!seen_.alone.error.empty()) co_return fail(Code::Unavailable, seen_.alone.error);
    if (seen_.alone.pieces.empty()) co_return fail(Code::Unavailable, "the answer has no text");
    const auto before = co_await begin_streams();
    if (!before) {
      co_await end_streams();
      co_return fail(before.error());
    }
    const Duration alone = seen_.alone.pieces.front() - seen_.alone.sent;
    spawn(text_of(options_.run, 4, *sentences), kLongAnswer, seen_.beside);
    const Instant sent = clock_.now();
    for (std::size_t i = 0; i < seen_.small.size(); ++i) {
      const auto part = static_cast<int>(i) + 1;
      timer_.expires_at(sent + alone * part / (options_.small_requests + 1));
      co_await timer_.async_wait(kAwait);
      spawn(fmt::format("Number {}: how are you today?", i), kSmallAnswer, seen_.small[i]);
    }
    while (running_ > options_.streams) co_await look_later();
    co_await end_streams();
    co_return std::move(seen_);
  }

 private:
  Awaitable<void> look_later() {
    timer_.expires_after(kLook);
    co_await timer_.async_wait(kAwait);
  }

  Awaitable<void> answer(std::string text, int max_tokens, StreamSeen& seen) {
    const ChatAsk ask{.content = std::move(text),
                      .model = options_.model,
                      .key = options_.key,
                      .max_tokens = max_tokens,
                      .seed = 1};
    http::Request request = chat_request(ask);
    const bool* enough = max_tokens == 0 ? &enough_ : nullptr;
    co_await read_answer(client_, std::move(request), options_.limit, clock_, seen, enough);
  }

  void spawn(std::string text, int max_tokens, StreamSeen& seen) {
    ++running_;
    boost::asio::co_spawn(executor_, answer(std::move(text), max_tokens, seen),
                          [this](std::exception_ptr) { --running_; });
  }

  // How many sentences make the long prompt, by two short ones.
  Task<int> find_sentences() {
    StreamSeen one;
    std::string text = text_of(options_.run, 1, 1);
    co_await answer(std::move(text), 1, one);
    if (!one.error.empty()) co_return fail(Code::Unavailable, one.error);
    StreamSeen many;
    text = text_of(options_.run, 2, kCalibrationSentences);
    co_await answer(std::move(text), 1, many);
    if (!many.error.empty()) co_return fail(Code::Unavailable, many.error);
    const auto tokens = static_cast<double>(many.prompt_tokens - one.prompt_tokens);
    if (tokens <= 0) co_return fail(Code::Unavailable, "the server tells no prompt_tokens");
    const double each = tokens / (kCalibrationSentences - 1);
    const double left = options_.prompt_tokens - static_cast<double>(one.prompt_tokens);
    co_return 1 + std::max(0, static_cast<int>(left / each));
  }

  // Until each stream has shown enough pieces.
  Task<void> begin_streams() {
    for (std::size_t i = 0; i < seen_.streams.size(); ++i) {
      spawn(fmt::format("Number {}: write a long story about a fleet of ships.", i), 0,
            seen_.streams[i]);
    }
    const auto wanted = static_cast<std::size_t>(options_.pieces_before);
    const auto ready = [&](const StreamSeen& stream) { return stream.pieces.size() >= wanted; };
    while (!std::ranges::all_of(seen_.streams, ready)) {
      if (running_ < options_.streams) {
        for (const StreamSeen& stream : seen_.streams) {
          if (!stream.error.empty()) co_return fail(Code::Unavailable, stream.error);
        }
        co_return fail(Code::Unavailable, "an answer was over before the long prompt came");
      }
      co_await look_later();
    }
    co_return Result<void>{};
  }

  Awaitable<void> end_streams() {
    enough_ = true;
    while (running_ > 0) co_await look_later();
  }

  const Executor executor_;
  http::Client& client_;
  const StallOptions& options_;
  const Clock& clock_;
  boost::asio::steady_timer timer_;
  StallSeen seen_;
  int running_ = 0;
  bool enough_ = false;
};

}  // namespace

Task<StallSeen> run_stall(Executor executor, http::Client& client, StallOptions options,
                          const Clock& clock) {
  Stall stall(std::move(executor), client, options, clock);
  auto seen = co_await stall.run();
  co_return seen;
}

}  // namespace flotilla::client
