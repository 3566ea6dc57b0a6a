#include "api/completions.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "api/openai.h"

namespace flotilla::api {
namespace {

json::Object chat_of(const std::string& body) {
  const auto request = parse_completion_request(body);
  EXPECT_TRUE(request) << body << ": " << request.error().message;
  auto chat = request ? json::parse_object(request->chat) : Result<json::Object>(json::Object{});
  return std::move(*chat);
}

Result<ChatRequest> parsed(const std::string& body) {
  const auto request = parse_completion_request(body);
  if (!request) return fail(request.error());
  return parse_chat_request(request->chat);
}

TEST(CompletionRequest, PromptsOfEveryKindReachTheRunner) {
  const auto prompts = [](const std::string& prompt) {
    return json::to_text(
        chat_of(R"({"model":"m","prompt":)" + prompt + "}").at("raw").at("prompts"));
  };
  EXPECT_EQ(prompts(R"("Once")"), R"(["Once"])");
  EXPECT_EQ(prompts(R"(["Once","Twice"])"), R"(["Once","Twice"])");
  EXPECT_EQ(prompts("[1,2]"), "[[1,2]]");
  EXPECT_EQ(prompts("[[1,2],[3]]"), "[[1,2],[3]]");

  const auto two = parsed(R"({"model":"m","prompt":["a",[1,2]],"n":3,"echo":true})");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->raw.prompts.size(), 2U);
  EXPECT_EQ(std::get<std::string>(two->raw.prompts[0]), "a");
  EXPECT_EQ(std::get<std::vector<std::int32_t>>(two->raw.prompts[1]),
            (std::vector<std::int32_t>{1, 2}));
  EXPECT_TRUE(two->raw.echo);
  EXPECT_EQ(two->raw.each, 3);
  EXPECT_EQ(two->n, 6);
  EXPECT_TRUE(two->messages.empty());
}

TEST(CompletionRequest, ChatsFieldsPassAndTheLimitIsOpenAis) {
  const json::Object chat = chat_of(
      R"({"model":"m","prompt":"x","temperature":0.5,"stop":["a"],"seed":3,"top_k":4,"user":"u",)"
      R"("logprobs":2,"stream":true,"stream_options":{"include_usage":true},"messages":[1]})");
  EXPECT_EQ(chat.at("max_tokens"), 16);
  EXPECT_EQ(chat.at("temperature"), 0.5);
  EXPECT_EQ(chat.at("top_k"), 4);
  EXPECT_EQ(chat.at("logprobs"), true);
  EXPECT_EQ(chat.at("top_logprobs"), 2);
  EXPECT_FALSE(chat.contains("messages") || chat.contains("prompt"));
  EXPECT_EQ(chat_of(R"({"model":"m","prompt":"x","max_tokens":5})").at("max_tokens"), 5);
  EXPECT_FALSE(chat_of(R"({"model":"m","prompt":"x","logprobs":0})").contains("top_logprobs"));
}

TEST(CompletionRequest, WhatIsNotDoneIsRefusedByName) {
  const auto named = [](const std::string& fields, const std::string& field,
                        const std::string& word) {
    const auto request = parsed(R"({"model":"m",)" + fields + "}");
    ASSERT_FALSE(request) << fields;
    EXPECT_EQ(request.error().code, Code::InvalidArgument);
    EXPECT_EQ(request.error().param, field) << request.error().message;
    EXPECT_NE(request.error().message.find(word), std::string::npos) << request.error().message;
  };
  named(R"("stream":false)", "prompt", "missing");
  named(R"("prompt":"")", "prompt", "not empty");
  named(R"("prompt":[])", "prompt", "token ids");
  named(R"("prompt":["a",""])", "prompt[1]", "not empty");
  named(R"("prompt":[1,-2])", "prompt", "-2");
  named(R"("prompt":[1,1.5])", "prompt", "1.5");
  named(R"("prompt":{"a":1})", "prompt", "token ids");
  named(R"("prompt":"x","best_of":2)", "best_of", "best_of");
  named(R"("prompt":"x","echo":true,"logprobs":1)", "logprobs", "echo");
  named(R"("prompt":"x","logprobs":9)", "logprobs", "9");
  named(R"("prompt":["a","b"],"n":100)", "prompt", "128");
  EXPECT_TRUE(parsed(R"({"model":"m","prompt":"x","best_of":1,"suffix":"","n":1})"));
}

std::unique_ptr<AnswerForm> form(const std::string& fields = "") {
  auto request = parse_completion_request(R"({"model":"m","prompt":"x")" + fields + "}");
  EXPECT_TRUE(request);
  return std::move(request->answer);
}

TEST(CompletionAnswer, ChunksAreTextCompletions) {
  const auto answer = form();
  EXPECT_EQ(answer->event(R"({"id":"chatcmpl-1","created":5,"model":"m","choices":[{"index":0,)"
                          R"("delta":{"role":"assistant","content":""},"finish_reason":null}]})"),
            "");
  EXPECT_EQ(answer->event(R"({"id":"chatcmpl-1","created":5,"model":"m","choices":[{"index":1,)"
                          R"("delta":{"content":"a"},"finish_reason":null}]})"),
            R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[)"
            R"({"index":1,"text":"a","logprobs":null,"finish_reason":null}]})"
            "\n\n");
  EXPECT_EQ(answer->event(R"({"id":"chatcmpl-1","created":5,"model":"m","choices":[{"index":0,)"
                          R"("delta":{},"finish_reason":"length"}],"x_flotilla":{"node":"n"}})"),
            R"(data: {"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[)"
            R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"}],)"
            R"("x_flotilla":{"node":"n"}})"
            "\n\n");
  EXPECT_EQ(answer->event("[DONE]"), "data: [DONE]\n\n");
}

TEST(CompletionAnswer, UsageComesAsAskedFor) {
  const auto answer = form(R"(,"stream":true,"stream_options":{"include_usage":true})");
  EXPECT_NE(answer
                ->event(R"({"id":"chatcmpl-1","created":5,"model":"m","choices":[{"index":0,)"
                        R"("delta":{"content":"a"},"finish_reason":null}],"usage":null})")
                .find(R"("usage":null)"),
            std::string::npos);
  EXPECT_NE(answer
                ->event(R"({"id":"chatcmpl-1","created":5,"model":"m","choices":[],)"
                        R"("usage":{"prompt_tokens":2,"completion_tokens":3}})")
                .find(R"("choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,)"),
            std::string::npos);
}

TEST(CompletionAnswer, LogprobsBecomeFourLists) {
  const auto answer = form();
  const auto event = [&](const std::string& token) {
    return answer->event(
        R"({"id":"chatcmpl-1","created":5,"model":"m","choices":[{"index":0,"delta":{"content":")" +
        token + R"("},"logprobs":{"content":[{"token":")" + token +
        R"(","logprob":-0.5,"bytes":[1],"top_logprobs":[{"token":"b","logprob":-1.5}]}]},)"
        R"("finish_reason":null}]})");
  };
  EXPECT_NE(event("é").find(R"("logprobs":{"tokens":["é"],"token_logprobs":[-5E-1],)"
                            R"("top_logprobs":[{"b":-1.5E0}],"text_offset":[0]})"),
            std::string::npos)
      << event("é");
  EXPECT_NE(event("x").find(R"("text_offset":[1])"), std::string::npos);
}

TEST(CompletionAnswer, LogprobsOfAnotherShapeAreLeftOut) {
  for (const char* token : {"5", "{}", R"({"token":1})", "null", "[]"}) {
    const std::string chunk =
        R"({"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[)" +
        std::string(token) + R"(,{"token":"a"},{"token":"b","logprob":-1,"top_logprobs":[)" +
        token + R"(]}]}}]})";
    const std::string event = form()->event(chunk);
    EXPECT_NE(event.find(R"("tokens":["a","b"],"token_logprobs":[null,-1],"top_logprobs":[{},{}])"),
              std::string::npos)
        << event;
  }
}

TEST(CompletionAnswer, AModelMayWriteNul) {
  EXPECT_NE(form()
                ->event(R"({"choices":[{"index":0,"delta":{"content":"a\u0000b"}}]})")
                .find(R"("text":"a\u0000b")"),
            std::string::npos);
}

TEST(CompletionAnswer, ErrorsAreOpenAis) {
  EXPECT_TRUE(form()
                  ->event(R"({"error":{"message":"gone","type":"server_error","code":"x"}})")
                  .starts_with(R"(data: {"error":{"message":"gone")"));
}

}  // namespace
}  // namespace flotilla::api
