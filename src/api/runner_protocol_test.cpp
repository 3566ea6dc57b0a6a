#include "api/runner_protocol.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(RunnerProtocol, ResumeComesBackAsItWas) {
  Resume resume;
  EXPECT_EQ(resume_json(resume), "{}");
  resume.finished = {0};
  EXPECT_EQ(resume_json(resume), R"({"finished":[0]})");
  resume.tokens = {{0, {1, 2, 49151}}, {3, {}}};
  EXPECT_EQ(resume_json(resume), R"({"0":[1,2,49151],"3":[],"finished":[0]})");
  const auto back = parse_resume(resume_json(resume), 49152);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->tokens, resume.tokens);
  EXPECT_EQ(back->finished, resume.finished);
}

TEST(RunnerProtocol, ResumeIsRangeChecked) {
  EXPECT_NE(parse_resume(R"({"0":[100]})", 100).error().message.find("100"), std::string::npos);
  for (const char* bad :
       {R"({"0":[-1]})", R"({"0":[1.5]})", R"({"0":["1"]})", R"({"0":5})", R"({"128":[]})",
        R"({"-1":[]})", R"({"x":[]})", R"({"finished":[128]})", "[]", ""}) {
    const auto parsed = parse_resume(bad, 100);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Code::InvalidArgument) << bad;
  }
}

TEST(RunnerProtocol, TokenComments) {
  std::string out;
  append_token_comment(out, 3, {0, 17, 49151});
  EXPECT_EQ(out, ": t 3 0,17,49151\n");
  const auto comment = parse_token_comment(std::string_view(out).substr(0, out.size() - 1));
  ASSERT_TRUE(comment);
  EXPECT_EQ(comment->choice, 3);
  EXPECT_EQ(comment->ids, (TokenIds{0, 17, 49151}));
  for (const char* bad : {"data: x", ": t", ": t 0", ": t 0 ", ": t x 1", ": t 0 1,", ": t 0 1;2",
                          ": t 0 -1", ": t 999 1", ": u {}"}) {
    EXPECT_FALSE(parse_token_comment(bad)) << bad;
  }
}

TEST(RunnerProtocol, TokenCommentsAreReadIntoTheSameMemory) {
  TokenIds ids{1, 2, 3};
  EXPECT_EQ(read_token_comment(": t 0 7", ids), 0);
  EXPECT_EQ(ids, TokenIds{7});
  EXPECT_EQ(read_token_comment(": t 2 8,9", ids), 2);
  EXPECT_EQ(ids, (TokenIds{8, 9}));
  EXPECT_FALSE(read_token_comment(": t 2 8,", ids));
}

TEST(RunnerProtocol, FindsTheFinishChunkWhateverTheTextSays) {
  const ChatChunkWriter writer({.id = "i", .created = 1, .model = "m"}, true);
  std::string block = ": t 2 5\n";
  writer.delta(block, 2, {.content = R"("finish_reason":"stop","choices":[{"index":1)"});
  EXPECT_FALSE(finished_choice(block));
  block.clear();
  writer.role(block, 2);
  EXPECT_FALSE(finished_choice(block));
  block = ": t 2 5,6\n";
  writer.finish(block, 12, {.content = "x"}, "stop", nullptr);
  EXPECT_EQ(finished_choice(block), 12);
  block.clear();
  writer.usage(block, {}, {});
  EXPECT_FALSE(finished_choice(block));
}

TEST(RunnerProtocol, UsageComment) {
  const RunnerUsage usage{
      .usage = {.prompt_tokens = 10, .completion_tokens = 3, .cached_tokens = 2},
      .ttft_ms = 12.5,
      .tokens_per_s = 80,
      .prompt_ms = 11,
      .prompt_passes = 4};
  const std::string text = usage_comment(usage);
  EXPECT_EQ(text,
            ": u {\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":13,"
            "\"prompt_tokens_details\":{\"cached_tokens\":2}},\"cached_tokens\":2,"
            "\"timings\":{\"ttft_ms\":12.5,\"tokens_per_s\":80,\"prompt_ms\":11,"
            "\"prompt_passes\":4}}\n\n");
  const auto back = parse_usage_comment(std::string_view(text).substr(0, text.size() - 2));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->usage.prompt_tokens, 10);
  EXPECT_EQ(back->usage.completion_tokens, 3);
  EXPECT_EQ(back->usage.cached_tokens, 2);
  EXPECT_EQ(back->ttft_ms, 12.5);
  EXPECT_EQ(back->prompt_ms, 11);
  EXPECT_EQ(back->prompt_passes, 4);
  EXPECT_FALSE(parse_usage_comment(": u {"));
  EXPECT_FALSE(parse_usage_comment("data: {}"));
}

TEST(RunnerProtocol, EventsComeBackAsTheyWere) {
  PassCounts passes;
  passes.add(0.5, 1);
  passes.add(20, 8);
  passes.add(20.5, 9);
  passes.add(5000, 65);
  const RunnerEvent event{.step = 7,
                          .step_ms_max = 20.5,
                          .running = 2,
                          .waiting = 1,
                          .kv_free = 4096,
                          .generated_tokens = 70,
                          .prompt_tokens = 300,
                          .cached_tokens = 100,
                          .tokens_per_s = 99,
                          .step_overhead = 0.05,
                          .resident_bytes = 1000,
                          .trims = 2,
                          .trimmed = "heap",
                          .passes = passes,
                          .stored_bytes = 900,
                          .stored = 3,
                          .disk_bytes = 70};
  EXPECT_EQ(to_json(event),
            R"({"step":7,"step_ms_max":20.5,"running":2,"waiting":1,"kv_free":4096,)"
            R"("generated_tokens":70,"prompt_tokens":300,"cached_tokens":100,"tokens_per_s":99,)"
            R"("step_overhead":0.05,"resident_bytes":1000,"trims":2,"trimmed":"heap",)"
            R"("passes":{"by_ms":[1,0,0,0,1,1,0,0,0,0,1],"by_width":[1,0,0,1,1,0,0,1],)"
            R"("width_sum":83,"ms_sum":5041},"stored":3,"stored_bytes":900,"disk_bytes":70})");
  const auto back = parse_runner_event(to_json(event));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 7U);
  EXPECT_EQ(back->kv_free, 4096);
  EXPECT_EQ(back->generated_tokens, 70);
  EXPECT_EQ(back->prompt_tokens, 300);
  EXPECT_EQ(back->cached_tokens, 100);
  EXPECT_EQ(back->step_overhead, 0.05);
  EXPECT_EQ(back->resident_bytes, 1000);
  EXPECT_EQ(back->trims, 2);
  EXPECT_EQ(back->trimmed, "heap");
  EXPECT_EQ(back->passes, passes);
  EXPECT_EQ(back->stored, 3);
  EXPECT_EQ(back->stored_bytes, 900);
  EXPECT_EQ(back->disk_bytes, 70);
  EXPECT_EQ(back->drafts.mode, "");
  EXPECT_EQ(parse_runner_event(R"({"passes":{"by_ms":[1],"by_width":"x"}})")->passes, PassCounts());
  EXPECT_FALSE(parse_runner_event("[]"));
}

TEST(RunnerProtocol, EventsTellOfDraftsWhereTheyWereAskedFor) {
  RunnerEvent event;
  event.drafts = {.mode = "ngram", .drafted_tokens = 40, .accepted_tokens = 30};
  const auto back = parse_runner_event(to_json(event));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->drafts.mode, "ngram");
  EXPECT_EQ(back->drafts.drafted_tokens, 40);
  EXPECT_EQ(back->drafts.accepted_tokens, 30);
  event.drafts = {.mode = "off", .reason = "its \"state\" stays"};
  EXPECT_EQ(parse_runner_event(to_json(event))->drafts.reason, event.drafts.reason);
  EXPECT_EQ(parse_runner_event(R"({"drafts":7})")->drafts.mode, "");
}

TEST(RunnerProtocol, SupervisedLines) {
  EXPECT_EQ(runner_line(RunnerLoading{.loaded_bytes = 5, .total_bytes = 10}),
            "{\"phase\":\"loading\",\"loaded_bytes\":5,\"total_bytes\":10}\n");
  EXPECT_EQ(runner_line(RunnerFailed{.error = "no \"x\""}),
            "{\"phase\":\"failed\",\"error\":\"no \\\"x\\\"\"}\n");
  RunnerInfo info;
  info.protocol = 1;
  info.description = "d";
  const std::string ready = runner_line(info);
  EXPECT_TRUE(
      ready.starts_with("{\"phase\":\"ready\",\"info\":{\"protocol\":1,\"description\":\"d\","));
  EXPECT_TRUE(ready.ends_with("}}\n"));
}

}  // namespace
}  // namespace flotilla::api
