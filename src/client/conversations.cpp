#include "client/conversations.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <fmt/format.h>

#include "api/json_text.h"
#include "base/random.h"
#include "client/chat_stream.h"

namespace flotilla::client {
namespace {

constexpr Duration kLimit = std::chrono::minutes(10);
constexpr int kRanks = 32;  // of 32 tokens each: 32 … 1,024

// Rank k comes with probability ~ 1/k.
int zipf_tokens(Random& random) {
  double sum = 0;
  for (int k = 1; k <= kRanks; ++k) sum += 1.0 / k;
  double at = random.uniform() * sum;
  for (int k = 1; k <= kRanks; ++k) {
    at -= 1.0 / k;
    if (at <= 0) return 32 * k;
  }
  return 32 * kRanks;
}

// About `tokens` tokens that no other conversation has.
std::string words(Random& random, int tokens) {
  static constexpr const char* kWords[] = {"sea",  "ship", "wind", "sail", "port", "wave",
                                           "star", "rope", "deck", "gull", "fish", "salt"};
  std::string out;
  for (int i = 0; i < tokens; ++i) {
    out += kWords[random.below(std::size(kWords))];
    out += ' ';
  }
  return out;
}

using Finished = boost::asio::experimental::channel<void(boost::system::error_code)>;

// One turn after the other; what was said before goes with each.
Awaitable<void> talk(http::Client& client, ConversationOptions options, std::uint64_t number,
                     const Clock& clock, std::vector<TurnSeen>& seen, Finished& finished) {
  Random random(options.seed * 1000 + number);
  std::string past;
  std::string home;
  for (int turn = 0; turn < options.turns; ++turn) {
    const int tokens =
        turn == 0 && options.first_tokens > 0 ? options.first_tokens : zipf_tokens(random);
    const ChatAsk ask{.content = fmt::format("Conversation {}-{}. {}", options.seed, number,
                                             words(random, tokens)),
                      .past = past,
                      .model = options.model,
                      .key = options.key,
                      .max_tokens = options.answer_tokens,
                      .seed = static_cast<int>(number)};
    StreamSeen stream;
    http::Request request = chat_request(ask);
    co_await read_answer(client, std::move(request), kLimit, clock, stream);
    if (!stream.whole && stream.error.empty()) stream.error = "the answer was not whole";
    TurnSeen one;
    one.turn = turn;
    one.error = stream.error;
    if (!one.error.empty()) {
      seen.push_back(std::move(one));
      break;
    }
    one.node = stream.node;
    one.cached_tokens = static_cast<std::uint64_t>(stream.cached_tokens);
    one.prompt_tokens = static_cast<std::uint64_t>(stream.prompt_tokens);
    one.computed_tokens = static_cast<std::uint64_t>(
        stream.prompt_tokens + stream.completion_tokens - stream.cached_tokens);
    if (!stream.pieces.empty()) one.ttft_ms = to_ms(stream.pieces.front() - stream.sent);
    one.at_home = turn > 0 && one.node == home;
    home = one.node;
    past += fmt::format(R"({{"role":"user","content":{}}},{{"role":"assistant","content":{}}},)",
                        api::json_string(ask.content), api::json_string(stream.text));
    seen.push_back(std::move(one));
  }
  finished.try_send(boost::system::error_code{});
}

}  // namespace

Task<std::vector<TurnSeen>> run_conversations(Executor executor, http::Client& client,
                                              ConversationOptions options, const Clock& clock) {
  std::vector<TurnSeen> seen;
  const auto count = static_cast<std::size_t>(options.conversations);
  Finished finished(executor, count);
  for (std::size_t i = 0; i < count; ++i) {
    boost::asio::co_spawn(executor, talk(client, options, i, clock, seen, finished),
                          [](std::exception_ptr) {});
  }
  for (std::size_t i = 0; i < count; ++i) co_await finished.async_receive(kAwait);
  co_return seen;
}

ConversationReport report_of(const std::vector<TurnSeen>& turns) {
  ConversationReport out;
  std::vector<double> ttft;
  std::map<int, std::vector<double>> ttft_by_turn;
  std::map<int, std::pair<double, double>> tokens_by_turn;  // cached, all
  int later = 0;
  int home = 0;
  for (const TurnSeen& turn : turns) {
    ++out.turns;
    if (!turn.error.empty()) {
      ++out.failed;
      if (out.first_error.empty()) out.first_error = turn.error;
      continue;
    }
    out.work[turn.node] += turn.computed_tokens;
    out.cached_tokens += turn.cached_tokens;
    ttft.push_back(turn.ttft_ms);
    ttft_by_turn[turn.turn].push_back(turn.ttft_ms);
    auto& [cached, prompt] = tokens_by_turn[turn.turn];
    cached += static_cast<double>(turn.cached_tokens);
    prompt += static_cast<double>(turn.prompt_tokens);
    if (turn.turn == 0) continue;
    ++later;
    home += turn.at_home ? 1 : 0;
  }
  out.at_home = later > 0 ? static_cast<double>(home) / later : 0;
  out.ttft_ms = spread_of(std::move(ttft));
  for (auto& [turn, times] : ttft_by_turn) out.ttft_by_turn[turn] = spread_of(std::move(times));
  for (const auto& [turn, tokens] : tokens_by_turn)
    out.cached_by_turn[turn] = tokens.second > 0 ? tokens.first / tokens.second : 0;
  if (out.work.empty()) return out;
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(out.work.begin(), out.work.end(), less);
  out.busiest_to_least = static_cast<double>(most->second) /
                         static_cast<double>(std::max<std::uint64_t>(1, least->second));
  return out;
}

std::string conversation_table(const ConversationReport& report) {
  std::string out =
      fmt::format("turns {}, failed {}\non their home {:.1f} %\nbusiest / least busy {:.2f}\n",
                  report.turns, report.failed, 100 * report.at_home, report.busiest_to_least);
  for (const auto& [node, tokens] : report.work)
    out += fmt::format("  {:<16} {:>8} tokens computed\n", node, tokens);
  out +=
      fmt::format("cached tokens {}\nTTFT p50 {:.0f} ms, p99 {:.0f} ms, max {:.0f} ms\n",
                  report.cached_tokens, report.ttft_ms.p50, report.ttft_ms.p99, report.ttft_ms.max);
  for (const auto& [turn, spread] : report.ttft_by_turn) {
    out += fmt::format("  turn {}: {:.1f} % cached, TTFT p50 {:.0f} ms, max {:.0f} ms\n", turn + 1,
                       100 * report.cached_by_turn.at(turn), spread.p50, spread.max);
  }
  if (!report.first_error.empty()) out += "first error: " + report.first_error + "\n";
  return out;
}

std::string conversation_json(const ConversationReport& report) {
  std::string by_turn;
  for (const auto& [turn, spread] : report.ttft_by_turn) {
    by_turn += fmt::format(R"({}{{"cached":{:.4f},"ttft_p50_ms":{:.1f},"ttft_max_ms":{:.1f}}})",
                           by_turn.empty() ? "" : ",", report.cached_by_turn.at(turn), spread.p50,
                           spread.max);
  }
  return fmt::format(
      R"({{"turns":{},"failed":{},"at_home":{:.4f},"busiest_to_least":{:.3f},"nodes":{},)"
      R"("cached_tokens":{},"ttft_ms":{{"p50":{:.1f},"p99":{:.1f},"max":{:.1f}}},"by_turn":[{}]}})",
      report.turns, report.failed, report.at_home, report.busiest_to_least, report.work.size(),
      report.cached_tokens, report.ttft_ms.p50, report.ttft_ms.p99, report.ttft_ms.max, by_turn);
}

}  // namespace flotilla::client
