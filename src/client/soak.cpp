#include "client/soak.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <fmt/format.h>

#include "api/json_text.h"

namespace flotilla::client {
namespace {

constexpr std::size_t kGroup = 50;  // generations whose median counts
constexpr std::size_t kKth = 500;

using Finished = boost::asio::experimental::channel<void(boost::system::error_code)>;

// One soak's workers and what they saw.
struct Soak {
  http::Client& client;
  const SoakOptions& options;
  const ReadResident& resident;
  const Clock& clock;
  Finished finished;
  SoakSeen seen{};
  int next = 0;
};

Awaitable<void> generate(Soak& soak) {
  while (soak.next < soak.options.generations) {
    const int number = soak.next++;
    const ChatAsk ask{.content = fmt::format("Number {}: say something about the number.", number),
                      .model = soak.options.model,
                      .key = soak.options.key,
                      .max_tokens = soak.options.max_tokens,
                      .seed = number};
    http::Request request = chat_request(ask);
    StreamSeen stream;
    co_await read_answer(soak.client, std::move(request), soak.options.limit, soak.clock, stream);
    const bool whole =
        stream.error.empty() && stream.whole && stream.completion_tokens == soak.options.max_tokens;
    if (soak.seen.error.empty()) soak.seen.error = stream.error;
    soak.seen.generations.push_back({.ms = to_ms(soak.clock.now() - stream.sent),
                                     .tokens = stream.completion_tokens,
                                     .whole = whole});
    soak.seen.resident.push_back(soak.resident ? soak.resident() : 0);
  }
  soak.finished.try_send(boost::system::error_code{});
}

double median_ms(const std::vector<Generation>& all, std::size_t from, std::size_t count) {
  if (from + count > all.size() || count == 0) return 0;
  std::vector<double> ms;
  for (std::size_t i = from; i < from + count; ++i) ms.push_back(all[i].ms);
  std::ranges::sort(ms);
  return ms[ms.size() / 2];
}

double mean(const std::vector<std::int64_t>& values, std::size_t from, std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += static_cast<double>(values[i]);
  return to > from ? sum / static_cast<double>(to - from) : 0;
}

}  // namespace

Task<SoakSeen> run_soak(Executor executor, http::Client& client, SoakOptions options,
                        ReadResident resident, const Clock& clock) {
  const auto parallel = static_cast<std::size_t>(options.parallel);
  Soak soak{.client = client,
            .options = options,
            .resident = resident,
            .clock = clock,
            .finished = Finished(executor, parallel)};
  const Instant begin = clock.now();
  for (std::size_t i = 0; i < parallel; ++i) {
    boost::asio::co_spawn(executor, generate(soak), [](std::exception_ptr) {});
  }
  for (std::size_t i = 0; i < parallel; ++i) co_await soak.finished.async_receive(kAwait);
  soak.seen.wall_s = to_s(clock.now() - begin);
  co_return std::move(soak.seen);
}

double SoakReport::resident_growth() const {
  return resident_first > 0 ? resident_last / resident_first - 1 : 0;
}

double SoakReport::slowdown() const {
  const double later = at_500_ms > 0 ? at_500_ms : last_ms;
  return first_ms > 0 ? later / first_ms : 0;
}

SoakReport report_of(const SoakSeen& seen) {
  const std::vector<Generation>& all = seen.generations;
  const std::size_t count = all.size();
  const std::size_t group = std::min(kGroup, count / 4);
  SoakReport report;
  report.generations = static_cast<int>(count);
  report.wall_s = seen.wall_s;
  report.error = seen.error;
  std::int64_t tokens = 0;
  for (const Generation& one : all) {
    tokens += one.tokens;
    report.failed += one.whole ? 0 : 1;
  }
  report.tokens_per_s = seen.wall_s > 0 ? static_cast<double>(tokens) / seen.wall_s : 0;
  report.first_ms = median_ms(all, 0, group);
  report.last_ms = median_ms(all, count - group, group);
  if (count >= kKth + kGroup) report.at_500_ms = median_ms(all, kKth - kGroup / 2, kGroup);
  report.resident_first = mean(seen.resident, 0, count / 4);
  report.resident_last = mean(seen.resident, count - count / 4, count);
  return report;
}

std::string soak_table(const std::string& url, const std::string& model, const SoakReport& report) {
  constexpr double kMib = 1 << 20;
  std::string out = fmt::format("soak: {} generations in {:.1f} s, {} not whole\n{} at {}\n\n",
                                report.generations, report.wall_s, report.failed, model, url);
  if (!report.error.empty()) out += fmt::format("  first error  {}\n", report.error);
  out += fmt::format("  tokens/s     {:.1f}\n", report.tokens_per_s);
  out += fmt::format("  a generation {:.1f} ms at first, {:.1f} ms at 500, {:.1f} ms at last\n",
                     report.first_ms, report.at_500_ms, report.last_ms);
  if (report.resident_first > 0) {
    out += fmt::format(
        "  memory       {:.1f} MiB in the first quarter, {:.1f} MiB in the last "
        "({:+.2f} %)\n",
        report.resident_first / kMib, report.resident_last / kMib, 100 * report.resident_growth());
  }
  return out;
}

std::string soak_json(const std::string& url, const std::string& model, const SoakReport& report) {
  return fmt::format(
      R"({{"url":{},"model":{},"generations":{},"failed":{},"wall_s":{:.2f},"tokens_per_s":{:.1f},)"
      R"("first_ms":{:.2f},"at_500_ms":{:.2f},"last_ms":{:.2f},"resident_first":{:.0f},)"
      R"("resident_last":{:.0f},"resident_growth":{:.4f},"error":{}}})",
      api::json_string(url), api::json_string(model), report.generations, report.failed,
      report.wall_s, report.tokens_per_s, report.first_ms, report.at_500_ms, report.last_ms,
      report.resident_first, report.resident_last, report.resident_growth(),
      report.error.empty() ? "null" : api::json_string(report.error));
}

}  // namespace flotilla::client
