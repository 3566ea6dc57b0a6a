#include "client/stream_rate.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <fmt/format.h>

#include "api/error_body.h"
#include "api/json_text.h"
#include "http/sse.h"

namespace flotilla::client {
namespace {

constexpr Duration kLimit = std::chrono::seconds(60);

http::Request chat_request(const RateOptions& options) {
  http::Request request;
  request.method = "POST";
  request.target = "/v1/chat/completions";
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  if (!options.key.empty()) request.headers.set("Authorization", "Bearer " + options.key);
  request.body =
      fmt::format(R"({{"model":{},"messages":[{{"role":"user","content":"Go."}}],"stream":true}})",
                  api::json_string(options.model));
  return request;
}

// What is wrong; empty: the stream was whole.
Awaitable<std::string> read_stream(http::Client& client, http::Request request, const Clock& clock,
                                   RateSeen& seen) {
  const Instant sent = clock.now();
  auto stream = co_await client.open(std::move(request), kLimit);
  if (!stream) co_return stream.error().message;
  http::SseSplitter splitter;
  bool done = false;
  bool first = true;
  for (;;) {
    const auto bytes = co_await (*stream)->read(kLimit);
    if (!bytes) co_return bytes.error().message;
    if (bytes->empty()) break;
    if ((*stream)->status() != 200)
      co_return api::parse_error_body((*stream)->status(), *bytes).message;
    if (std::exchange(first, false)) seen.first_byte_ms.push_back(to_ms(clock.now() - sent));
    splitter.feed(*bytes, [&](std::string_view block) {
      if (block.starts_with("data: {")) ++seen.chunks;
      done = done || block.starts_with("data: [DONE]");
    });
  }
  co_return done ? std::string() : "a stream ended without [DONE]";
}

using Finished = boost::asio::experimental::channel<void(boost::system::error_code)>;

Awaitable<void> ask_until(http::Client& client, RateOptions options, Instant until,
                          const Clock& clock, RateSeen& seen, Finished& finished) {
  while (clock.now() < until) {
    const std::string wrong = co_await read_stream(client, chat_request(options), clock, seen);
    if (wrong.empty()) {
      ++seen.streams;
      continue;
    }
    ++seen.failed;
    if (seen.first_error.empty()) seen.first_error = wrong;
    if (seen.failed > 1000) break;
  }
  finished.try_send(boost::system::error_code{});
}

double median(std::vector<double> values) { return spread_of(std::move(values)).p50; }

struct Figures {
  double chunks_per_s = 0;
  double first_byte_ms = 0;
  std::uint64_t failed = 0;
};

Figures figures_of(const NamedRates& server) {
  std::vector<double> rates;
  std::vector<double> firsts;
  Figures out;
  for (const RateSeen& round : server.rounds) {
    rates.push_back(round.chunks_per_s());
    firsts.push_back(median(round.first_byte_ms));
    out.failed += round.failed;
  }
  out.chunks_per_s = median(rates);
  out.first_byte_ms = median(firsts);
  return out;
}

}  // namespace

Task<RateSeen> run_rate(Executor executor, http::Client& client, RateOptions options,
                        const Clock& clock) {
  RateSeen warm;
  const std::string wrong = co_await read_stream(client, chat_request(options), clock, warm);
  if (!wrong.empty()) co_return fail(Code::Unavailable, wrong);
  RateSeen seen;
  const auto count = static_cast<std::size_t>(options.connections);
  Finished finished(executor, count);
  const Instant begin = clock.now();
  for (std::size_t i = 0; i < count; ++i) {
    boost::asio::co_spawn(executor,
                          ask_until(client, options, begin + options.length, clock, seen, finished),
                          [](std::exception_ptr) {});
  }
  for (std::size_t i = 0; i < count; ++i) co_await finished.async_receive(kAwait);
  seen.seconds = to_s(clock.now() - begin);
  co_return seen;
}

std::string rate_table(const std::vector<NamedRates>& servers) {
  std::string out;
  for (const NamedRates& server : servers) {
    const Figures figures = figures_of(server);
    out += fmt::format("{:<40} {:>10.0f} chunks/s   first byte {:.2f} ms (p50)   {} failed\n",
                       server.url, figures.chunks_per_s, figures.first_byte_ms, figures.failed);
  }
  if (servers.size() == 2) {
    const Figures a = figures_of(servers[0]);
    const Figures b = figures_of(servers[1]);
    out += fmt::format("first / second: chunks/s {:.2f}, first byte {:.2f}\n",
                       a.chunks_per_s / b.chunks_per_s, a.first_byte_ms / b.first_byte_ms);
  }
  return out;
}

std::string rate_json(const std::vector<NamedRates>& servers) {
  std::string out = R"({"servers":[)";
  for (const NamedRates& server : servers) {
    const Figures figures = figures_of(server);
    if (&server != &servers.front()) out += ',';
    out += fmt::format(
        R"({{"url":{},"chunks_per_s":{:.0f},"first_byte_ms":{:.3f},"failed":{},"rounds":{}}})",
        api::json_string(server.url), figures.chunks_per_s, figures.first_byte_ms, figures.failed,
        server.rounds.size());
  }
  return out + "]}";
}

}  // namespace flotilla::client
