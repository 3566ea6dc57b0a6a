#include "client/burst.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <fmt/format.h>

namespace flotilla::client {
namespace {

// Prompts differ from the first words on, so that no cache of prefixes answers for the engine.
http::Request numbered_request(const BurstOptions& options, int number, int max_tokens) {
  const std::string_view prompt = options.prompt.empty()
                                      ? "write a long story about a fleet of ships and the sea."
                                      : std::string_view(options.prompt);
  return chat_request({.content = fmt::format("Number {}: {}", number, prompt),
                       .model = options.model,
                       .key = options.key,
                       .max_tokens = max_tokens,
                       .seed = number});
}

using Finished = boost::asio::experimental::channel<void(boost::system::error_code)>;

Awaitable<void> ask_and_tell(http::Client& client, http::Request request, Duration limit,
                             const Clock& clock, StreamSeen& seen, Finished& finished) {
  co_await read_answer(client, std::move(request), limit, clock, seen);
  finished.try_send(boost::system::error_code{});
}

void send_all(const Executor& executor, http::Client& client, const BurstOptions& options,
              const Clock& clock, BurstSeen& burst, Finished& finished) {
  int number = 0;
  for (StreamSeen& seen : burst.streams) {
    http::Request request = numbered_request(options, ++number, options.max_tokens);
    boost::asio::co_spawn(
        executor, ask_and_tell(client, std::move(request), options.limit, clock, seen, finished),
        [](std::exception_ptr) {});
  }
}

}  // namespace

Task<BurstSeen> run_burst(Executor executor, http::Client& client, BurstOptions options,
                          const Clock& clock) {
  StreamSeen first;
  http::Request first_request = numbered_request(options, 0, 4);
  co_await read_answer(client, std::move(first_request), options.limit, clock, first);
  if (!first.error.empty()) co_return fail(Code::Unavailable, first.error);

  BurstSeen burst;
  burst.max_tokens = options.max_tokens;
  burst.streams.resize(static_cast<std::size_t>(options.requests));
  Finished finished(executor, burst.streams.size());
  burst.begin = clock.now();
  send_all(executor, client, options, clock, burst, finished);
  for (std::size_t i = 0; i < burst.streams.size(); ++i) co_await finished.async_receive(kAwait);
  burst.end = clock.now();
  co_return burst;
}

}  // namespace flotilla::client
