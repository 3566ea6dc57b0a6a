#include "api/foreign.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

AnswerHead head() { return {.id = "chatcmpl-1", .created = 7, .model = "pool"}; }
ServedBy served() { return {.node = "gpu", .replica = "gpu", .queued_ms = 1}; }

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ForeignBody, becomes_the_engines_own_and_keeps_what_the_client_said) {
  const auto body = foreign_chat_body(
      R"({"model":"pool","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"session_id":"s","timeout_s":3})",
      "up/stream");
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_TRUE(has(*body, R"("model":"up/stream")"));
  EXPECT_TRUE(has(*body, R"("stream":true)"));
  EXPECT_TRUE(has(*body, R"("include_usage":true)"));
  EXPECT_TRUE(has(*body, R"("temperature":5E-1)")) << *body;
  EXPECT_FALSE(has(*body, "session_id"));
  EXPECT_FALSE(has(*body, "timeout_s"));
}

TEST(ForeignBody, a_text_completion_is_not_sent_as_a_chat_without_messages) {
  const auto body = foreign_chat_body(R"({"model":"p","raw":{"prompts":["x"]}})", "m");
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, Code::InvalidArgument);
  EXPECT_EQ(body.error().reason, "not_supported_by_engine");
}

TEST(ForeignBody, a_seed_is_sent_only_if_the_client_sent_one) {
  EXPECT_FALSE(has(*foreign_chat_body(R"({"model":"p","messages":[]})", "m"), "seed"));
}

TEST(FirstModel, is_the_lists_first_or_nothing) {
  EXPECT_EQ(first_model(R"({"object":"list","data":[{"id":"a"},{"id":"b"}]})"), "a");
  for (const char* none :
       {"", "{}", R"({"data":[]})", R"({"data":[7]})", R"({"data":[{"id":7}]})", "<html>"}) {
    EXPECT_EQ(first_model(none), "") << none;
  }
}

constexpr const char* kText =
    R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]})";
constexpr const char* kFinish =
    R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})";
constexpr const char* kUsage =
    R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":2}}})";

TEST(ForeignChunks, id_and_model_become_ours) {
  ForeignChunks chunks(head(), served(), false);
  const auto out = chunks.rewrite(kText, 10);
  ASSERT_TRUE(out);
  EXPECT_TRUE(has(*out, R"("id":"chatcmpl-1")"));
  EXPECT_TRUE(has(*out, R"("model":"pool")"));
  EXPECT_TRUE(has(*out, R"("created":7)"));
  EXPECT_TRUE(has(*out, R"("content":"Hi")"));
  EXPECT_FALSE(chunks.complete());
}

TEST(ForeignChunks, usage_is_hidden_from_a_client_that_did_not_ask_and_yet_counted) {
  ForeignChunks chunks(head(), served(), false);
  const auto finish = chunks.rewrite(kFinish, 10);
  EXPECT_TRUE(has(*finish, "x_flotilla"));
  EXPECT_EQ(*chunks.rewrite(kUsage, 20), "");
  EXPECT_EQ(chunks.usage().prompt_tokens, 5);
  EXPECT_EQ(chunks.usage().cached_tokens, 2);
  EXPECT_FALSE(chunks.done());
  EXPECT_EQ(*chunks.rewrite("[DONE]", 21), "");
  EXPECT_TRUE(chunks.done());
  EXPECT_TRUE(chunks.complete());
}

TEST(ForeignChunks, usage_is_shown_to_a_client_that_asked_with_who_served_in_the_last_chunk) {
  ForeignChunks chunks(head(), served(), true);
  EXPECT_FALSE(has(*chunks.rewrite(kFinish, 10), "x_flotilla"));
  const auto usage = chunks.rewrite(kUsage, 20);
  EXPECT_TRUE(has(*usage, R"("total_tokens":8)"));
  EXPECT_TRUE(has(*usage, R"("node":"gpu")"));
}

TEST(ForeignChunks, an_error_event_and_what_is_not_json_are_errors) {
  ForeignChunks chunks(head(), served(), false);
  const auto error = chunks.rewrite(R"({"error":{"message":"out of memory"}})", 1);
  ASSERT_FALSE(error);
  EXPECT_TRUE(has(error.error().message, "out of memory"));
  EXPECT_FALSE(chunks.rewrite("{", 1));
}

}  // namespace
}  // namespace flotilla::api
