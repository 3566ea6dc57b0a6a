#include "api/bench.h"

#include <gtest/gtest.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

TEST(ParseBench, DefaultsAreTheSeedsMeasurement) {
  const auto spec = parse_bench("");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->requests, 20);
  EXPECT_EQ(spec->max_tokens, 100);
}

TEST(ParseBench, RefusesWhatItDoesNotKnowAndNamesTheField) {
  for (const char* body : {R"({"requests":0})", R"({"requests":257})", R"({"max_tokens":"x"})",
                           R"({"model":1})", R"({"stream":true})"}) {
    const auto spec = parse_bench(body);
    ASSERT_FALSE(spec) << body;
    EXPECT_FALSE(spec.error().param.empty()) << body;
  }
}

TEST(BenchReport, CountsTokensOfAllStreamsOverTheWholeTime) {
  BenchReport report{
      .spec = {.model = "m", .requests = 2, .max_tokens = 50},
      .took_ms = 2000,
      .streams = {{1, "a", 100, 1900, 50, true, ""}, {2, "b", 0, 0, 0, false, "no"}}};
  const auto read = json::parse_object(to_json(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at("tokens_per_s").to_number<double>(), 25);
  EXPECT_EQ(read->at("whole").to_number<int>(), 1);
  EXPECT_EQ(read->at("ttft_p50_ms").to_number<double>(), 100);
  EXPECT_EQ(read->at("streams").as_array()[1].as_object().at("error").as_string(), "no");
}

}  // namespace
}  // namespace flotilla::api
