#include "api/foreign.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

AnswerHead head() { return {.id = "chatcmpl-1", .created = 7, .model = "pool"}; }
ServedBy served() { return {.node = "gpu", .replica = "gpu", .queued_ms = 1}; }

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ForeignChunks, counts_below_nothing_are_nothing) {
  ForeignChunks chunks({}, {}, {.usage = true});
  ASSERT_TRUE(chunks.rewrite(
      R"({"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":9223372036854775807}})", 1));
  EXPECT_EQ(chunks.usage().prompt_tokens, 0);
  EXPECT_EQ(chunks.usage().completion_tokens, 1 << 30);
}

TEST(ProbeAnswer, is_whole_or_says_why_not) {
  const std::string text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
  const std::string end =
      "data: "
      "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\r\n\r\ndata:[DONE]"
      "\n\n";
  EXPECT_TRUE(check_probe_answer(200, ": keepalive\n\n" + text + end));
  EXPECT_FALSE(check_probe_answer(200, text));
  EXPECT_FALSE(check_probe_answer(200, ""));
  const auto failed = check_probe_answer(
      200,
      text + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n");
  ASSERT_FALSE(failed);
  EXPECT_TRUE(has(failed.error().message, "\"error\""));
  const auto refused =
      check_probe_answer(404, R"({"error": "arange(): incompatible function arguments"})");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(has(refused.error().message, "arange()")) << refused.error().message;
}

TEST(FirstModel, is_the_lists_first_or_nothing) {
  const auto listed =
      first_model(R"({"object":"list","data":[{"id":"a","owned_by":"llamacpp"},{"id":"b"}]})");
  EXPECT_EQ(listed.id, "a");
  EXPECT_EQ(engine_of_owner(listed.owned_by), "llama-server");
  for (const char* none :
       {"", "{}", R"({"data":[]})", R"({"data":[7]})", R"({"data":[{"id":7}]})", "<html>"}) {
    EXPECT_EQ(first_model(none).id, "") << none;
  }
}

constexpr const char* kText =
    R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]})";
constexpr const char* kFinish =
    R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";
constexpr const char* kUsage =
    R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":2}}})";

TEST(ForeignChunks, id_and_model_become_ours) {
  ForeignChunks chunks(head(), served(), {});
  const auto out = chunks.rewrite(kText, 10);
  ASSERT_TRUE(out);
  EXPECT_TRUE(has(out->chunk, R"("id":"chatcmpl-1")"));
  EXPECT_TRUE(has(out->chunk, R"("model":"pool")"));
  EXPECT_TRUE(has(out->chunk, R"("created":7)"));
  EXPECT_TRUE(has(out->chunk, R"("content":"Hi")"));
  EXPECT_FALSE(chunks.complete());
}

TEST(ForeignChunks, usage_is_hidden_from_a_client_that_did_not_ask_and_yet_counted) {
  ForeignChunks chunks(head(), served(), {.cached = true});
  const auto finish = chunks.rewrite(kFinish, 10);
  EXPECT_TRUE(has(finish->chunk, "x_flotilla"));
  EXPECT_EQ(chunks.rewrite(kUsage, 20)->chunk, "");
  EXPECT_EQ(chunks.usage().prompt_tokens, 5);
  EXPECT_EQ(chunks.usage().cached_tokens, 2);
  EXPECT_FALSE(chunks.done());
  EXPECT_EQ(chunks.rewrite("[DONE]", 21)->chunk, "");
  EXPECT_TRUE(chunks.done());
  EXPECT_TRUE(chunks.complete());
}

TEST(ForeignChunks, usage_is_shown_to_a_client_that_asked_with_who_served_in_the_last_chunk) {
  ForeignChunks chunks(head(), served(), {.usage = true, .cached = true});
  EXPECT_FALSE(has(chunks.rewrite(kFinish, 10)->chunk, "x_flotilla"));
  const auto usage = chunks.rewrite(kUsage, 20);
  EXPECT_TRUE(has(usage->chunk, R"("total_tokens":8)"));
  EXPECT_TRUE(has(usage->chunk, R"("node":"gpu")"));
}

// As llama-server, DeepSeek's and Kimi's servers tell it.
TEST(ForeignChunks, what_another_had_cached_is_told_by_no_name) {
  for (const bool usage : {true, false}) {
    ForeignChunks chunks(head(), served(), {.usage = usage});
    std::string all;
    for (
        const char* data :
        {R"({"choices":[{"index":0,"delta":{"content":"Hi"},"usage":{"cached_tokens":77}}],"__verbose":{"tokens_cached":77},"prompt_progress":{"cache":77}})",
         R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":77},"usage":{"prompt_tokens":90,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":77}}})",
         R"({"choices":[],"tokens_cached":77,"timings":{"cache_n":77},"usage":{"prompt_tokens":90,"completion_tokens":1,"total_tokens":91,"completion_tokens_details":{"reasoning_tokens":1},"prompt_cache_hit_tokens":77,"cache_read_input_tokens":77,"prompt_tokens_details":{"cached_tokens":77}}})",
         "[DONE]"}) {
      const auto piece = chunks.rewrite(data, 1);
      ASSERT_TRUE(piece) << piece.error().message;
      all += piece->chunk;
    }
    EXPECT_FALSE(has(all, "77")) << all;
    EXPECT_TRUE(has(all, R"("cached_tokens":0)")) << "in x_flotilla";
    EXPECT_EQ(has(all, R"("usage":{"prompt_tokens":90,"completion_tokens":1,"total_tokens":91,)"
                       R"("completion_tokens_details":{"reasoning_tokens":1}})"),
              usage)
        << all;
    EXPECT_EQ(chunks.usage().prompt_tokens, 90);
    EXPECT_EQ(chunks.usage().cached_tokens, 0) << "nor counted where keys may look";
  }
}

TEST(ForeignChunks, what_the_caller_itself_had_cached_is_told) {
  ForeignChunks chunks(head(), served(), {.usage = true, .cached = true});
  ASSERT_TRUE(chunks.rewrite(kFinish, 10));
  const auto usage = chunks.rewrite(kUsage, 20);
  EXPECT_TRUE(has(usage->chunk, R"("prompt_tokens_details":{"cached_tokens":2})"));
  EXPECT_TRUE(has(usage->chunk, R"("resumed":false,"cached_tokens":2)")) << usage->chunk;
}

TEST(ForeignChunks, who_served_is_told_though_the_engine_tells_no_usage) {
  ForeignChunks chunks(head(), served(), {.usage = true, .cached = true});
  EXPECT_FALSE(has(chunks.rewrite(kFinish, 10)->chunk, "x_flotilla"));
  const auto last = chunks.rewrite("[DONE]", 11);
  EXPECT_TRUE(has(last->chunk, R"("choices":[],"x_flotilla")")) << last->chunk;
  EXPECT_FALSE(last->has_text);
}

TEST(ForeignChunks, the_role_is_told_once_and_is_no_text_and_thoughts_have_our_name) {
  ForeignChunks chunks(head(), served(), {});
  const auto role =
      chunks.rewrite(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})", 1);
  EXPECT_FALSE(role->has_text);
  EXPECT_TRUE(has(role->chunk, "assistant"));
  const auto thought = chunks.rewrite(
      R"({"choices":[{"index":0,"delta":{"role":"assistant","reasoning":"hm"}}],"timings":{}})", 2);
  EXPECT_TRUE(thought->has_text);
  EXPECT_FALSE(has(thought->chunk, "assistant"));
  EXPECT_FALSE(has(thought->chunk, "timings"));
  EXPECT_TRUE(has(thought->chunk, R"("delta":{"reasoning_content":"hm"})")) << thought->chunk;
}

TEST(ForeignChunks, stop_reasons_are_openais_and_an_end_by_error_is_no_answer) {
  const auto end = [](std::string_view reason) {
    ForeignChunks chunks(head(), served(), {});
    return chunks.rewrite(
        fmt::format(R"({{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{}"}}]}})", reason),
        1);
  };
  EXPECT_TRUE(has(end("eos_token")->chunk, R"("finish_reason":"stop")"));
  for (const char* cut : {"max_tokens", "repetition"})
    EXPECT_TRUE(has(end(cut)->chunk, R"("finish_reason":"length")")) << cut;
  EXPECT_TRUE(has(end("tool_calls")->chunk, R"("finish_reason":"tool_calls")"));
  for (const char* none : {"error", "abort", "load", ""}) EXPECT_FALSE(end(none)) << none;
}

TEST(ForeignChunks, an_answer_is_whole_when_each_of_its_choices_is) {
  const auto end_of = [](int choice) {
    return fmt::format(R"({{"choices":[{{"index":{},"delta":{{}},"finish_reason":"stop"}}]}})",
                       choice);
  };
  ForeignChunks chunks(head(), served(), {});
  for (const int choice : {0, 1}) {
    ASSERT_TRUE(chunks.rewrite(
        fmt::format(R"({{"choices":[{{"index":{},"delta":{{"content":"Hi"}}}}]}})", choice), 1));
  }
  EXPECT_FALSE(has(chunks.rewrite(end_of(1), 2)->chunk, "x_flotilla"));
  EXPECT_FALSE(chunks.complete());
  EXPECT_TRUE(has(chunks.rewrite(end_of(0), 3)->chunk, "x_flotilla"));
  EXPECT_TRUE(chunks.complete());
}

TEST(ForeignChunks, a_chunk_of_no_choice_and_no_usage_is_none_of_the_answer) {
  for (const bool usage : {true, false}) {
    ForeignChunks chunks(head(), served(), {.usage = usage});
    for (const char* nothing : {R"({"choices":[],"prompt_filter_results":[{}]})",
                                R"({"choices":[],"usage":null})", R"({"id":"x"})"}) {
      const auto piece = chunks.rewrite(nothing, 1);
      ASSERT_TRUE(piece) << piece.error().message;
      EXPECT_EQ(piece->chunk, "") << nothing;
      EXPECT_FALSE(piece->has_text) << nothing;
    }
    ASSERT_TRUE(chunks.rewrite(kFinish, 10));
    EXPECT_EQ(has(chunks.rewrite(kUsage, 20)->chunk, "x_flotilla"), usage);
  }
}

TEST(ForeignChunks, a_chunk_that_says_that_there_is_no_error_is_none) {
  ForeignChunks chunks(head(), served(), {});
  const auto piece =
      chunks.rewrite(R"({"error":null,"choices":[{"index":0,"delta":{"content":"Hi"}}]})", 1);
  ASSERT_TRUE(piece) << piece.error().message;
  EXPECT_FALSE(has(piece->chunk, "error"));
}

TEST(ForeignChunks, an_error_event_and_what_is_not_json_are_errors) {
  ForeignChunks chunks(head(), served(), {});
  const auto error = chunks.rewrite(R"({"error":{"message":"out of memory"}})", 1);
  ASSERT_FALSE(error);
  EXPECT_TRUE(has(error.error().message, "out of memory"));
  EXPECT_FALSE(chunks.rewrite("{", 1));
}

}  // namespace
}  // namespace flotilla::api
