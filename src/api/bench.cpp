#include "api/bench.h"

#include <algorithm>
#include <cmath>

#include "api/json.h"

namespace flotilla::api {
namespace {

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto at =
      static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  return values[std::min(at, values.size() - 1)];
}

}  // namespace

Result<BenchSpec> parse_bench(std::string_view body) {
  const auto object = json::parse_object(body.empty() ? "{}" : body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  BenchSpec spec;
  spec.model = reader.string("model", 200).value_or("");
  spec.requests = static_cast<int>(reader.integer("requests", 1, 256).value_or(spec.requests));
  spec.max_tokens =
      static_cast<int>(reader.integer("max_tokens", 1, 4096).value_or(spec.max_tokens));
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return spec;
}

std::string to_json(const BenchReport& report) {
  json::Array streams;
  std::vector<double> first;
  std::int64_t tokens = 0;
  std::int64_t whole = 0;
  for (const BenchStream& stream : report.streams) {
    if (stream.tokens > 0) first.push_back(stream.first_ms);
    tokens += stream.tokens;
    whole += stream.whole ? 1 : 0;
    json::Object out{{"number", stream.number},     {"node", stream.node},
                     {"first_ms", stream.first_ms}, {"last_ms", stream.last_ms},
                     {"tokens", stream.tokens},     {"whole", stream.whole}};
    if (!stream.error.empty()) out["error"] = stream.error;
    streams.push_back(std::move(out));
  }
  const double seconds = report.took_ms / 1000;
  return json::to_text(
      json::Object{{"model", report.spec.model},
                   {"requests", report.spec.requests},
                   {"max_tokens", report.spec.max_tokens},
                   {"took_ms", report.took_ms},
                   {"whole", whole},
                   {"tokens", tokens},
                   {"tokens_per_s", seconds > 0 ? static_cast<double>(tokens) / seconds : 0},
                   {"ttft_p50_ms", percentile(first, 0.5)},
                   {"ttft_p99_ms", percentile(first, 0.99)},
                   {"streams", std::move(streams)}});
}

}  // namespace flotilla::api
