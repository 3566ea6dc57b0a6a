#include "api/chat_chunks.h"

#include <gtest/gtest.h>

#include "api/chat_assembler.h"
#include "api/error_body.h"
#include "api/json.h"

namespace flotilla::api {
namespace {

const AnswerHead kHead{.id = "chatcmpl-1", .created = 1700000000, .model = "m\"x"};
const ServedBy kServed{.node = "n1",
                       .replica = "n1",
                       .queued_ms = 1.5,
                       .ttft_ms = 20,
                       .tokens_per_s = 99.1234,
                       .resumed = true,
                       .cached_tokens = 4};

// Feeds the data of each block to the assembler.
Result<void> feed_all(ChatAssembler& assembler, const std::string& stream) {
  std::size_t at = 0;
  while (at < stream.size()) {
    const std::size_t end = stream.find("\n\n", at);
    auto fed = assembler.feed(std::string_view(stream).substr(at + 6, end - at - 6));
    if (!fed) return fed;
    at = end + 2;
  }
  return {};
}

TEST(ChatChunks, AreWhatTheSdkReads) {
  const ChatChunkWriter plain(kHead, false);
  std::string out;
  plain.role(out, 0);
  EXPECT_EQ(
      out,
      "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
      "\"model\":\"m\\\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
      "\"content\":\"\"},\"finish_reason\":null}]}\n\n");
  out.clear();
  plain.finish(out, 1, {}, "stop", &kServed);
  EXPECT_NE(
      out.find("\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}],"
               "\"x_flotilla\":{\"node\":\"n1\",\"replica\":\"n1\",\"queued_ms\":1.5,"
               "\"ttft_ms\":20,\"tokens_per_s\":99.123,\"resumed\":true,\"cached_tokens\":4}}\n\n"),
      std::string::npos)
      << out;
}

TEST(ChatChunks, SayUsageNullWhenTheLastOneTellsIt) {
  const ChatChunkWriter writer(kHead, true);
  std::string out;
  writer.delta(out, 0, {.content = "a"});
  EXPECT_TRUE(out.ends_with("\"finish_reason\":null}],\"usage\":null}\n\n")) << out;
  out.clear();
  writer.finish(out, 0, {}, "length", &kServed);
  EXPECT_TRUE(out.ends_with("\"cached_tokens\":4},\"usage\":null}\n\n")) << out;
  out.clear();
  writer.usage(out, {.prompt_tokens = 5, .completion_tokens = 2, .cached_tokens = 1}, kServed);
  EXPECT_NE(out.find("\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,"
                     "\"total_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":1}},"),
            std::string::npos)
      << out;
}

TEST(ChatChunks, TellTheStopStringAndWhereAskedThePromptAtOnce) {
  const ChatChunkWriter writer(kHead, true);
  std::string out;
  const Usage usage{.prompt_tokens = 5, .completion_tokens = 1, .cached_tokens = 2};
  writer.role(out, 0, "echo", &usage);
  EXPECT_NE(out.find(R"("content":"echo"},"finish_reason":null}],"usage":{"prompt_tokens":5,)"),
            std::string::npos)
      << out;
  EXPECT_TRUE(out.ends_with("}}}\n\n")) << out;
  out.clear();
  ChatDelta last;
  last.stop = "\nEnd";
  writer.finish(out, 0, last, "stop", nullptr);
  EXPECT_NE(out.find(R"("finish_reason":"stop","stop_reason":"\nEnd"}])"), std::string::npos)
      << out;

  ChatAssembler read;
  ASSERT_TRUE(read.feed(std::string_view(out).substr(6)));
  EXPECT_NE(read.answer().find(R"("finish_reason":"stop","stop_reason":"\nEnd"})"),
            std::string::npos);
  ChatAssembler made;
  made.begin(kHead);
  made.add(0, last);
  made.finish_choice(0, "stop");
  EXPECT_NE(made.answer().find(R"("finish_reason":"stop","stop_reason":"\nEnd"})"),
            std::string::npos);
}

TEST(ChatAssembler, WholeAnswerOfAStreamIsThatOfDirectWriting) {
  for (const bool with_usage : {false, true}) {
    const ChatChunkWriter writer(kHead, with_usage);
    std::string stream;
    ChatAssembler direct;
    direct.begin(kHead);
    writer.role(stream, 0);
    writer.role(stream, 1);
    for (const char* text : {"a\"\n", "\xF0\x9F\x98\x80", "\\end"}) {
      for (const int choice : {1, 0}) {
        writer.delta(stream, choice, {.content = text});
        direct.add(choice, {.content = text});
      }
    }
    const Usage usage{.prompt_tokens = 3, .completion_tokens = 6, .cached_tokens = 0};
    writer.finish(stream, 1, {}, "length", nullptr);
    writer.finish(stream, 0, {.content = "!"}, "stop", with_usage ? nullptr : &kServed);
    if (with_usage) writer.usage(stream, usage, kServed);
    stream += kSseDone;
    direct.add(0, {.content = "!"});
    direct.finish_choice(0, "stop");
    direct.finish_choice(1, "length");
    direct.set_usage(usage, kServed);

    ChatAssembler assembled;
    ASSERT_TRUE(feed_all(assembled, stream));
    EXPECT_TRUE(assembled.complete());
    const auto one = json::parse_object(assembled.answer());
    const auto two = json::parse_object(direct.answer());
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->at("choices"), two->at("choices"));
    EXPECT_EQ(one->at("id"), two->at("id"));
    EXPECT_EQ(one->at("model"), "m\"x");
    EXPECT_EQ(one->contains("usage"), with_usage);
    EXPECT_EQ(two->at("usage").at("total_tokens"), 9);
    EXPECT_EQ(one->at("choices").at(0).at("message").at("content"), "a\"\n\xF0\x9F\x98\x80\\end!");
  }
}

TEST(ChatAssembler, JoinsToolCallsReasoningAndLogprobsOfOtherEngines) {
  ChatAssembler assembler;
  const char* chunks[] = {
      R"({"id":"x","created":5,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"th"}}]})",
      R"({"choices":[{"index":0,"delta":{"reasoning_content":"ink","tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a"}}]},"logprobs":{"content":[{"token":"a"}]}}]})",
      R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]},"finish_reason":"tool_calls","logprobs":{"content":[{"token":"b"}]}}]})",
      R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}})"};
  for (const char* chunk : chunks) ASSERT_TRUE(assembler.feed(chunk));
  const auto answer = json::parse_object(assembler.answer());
  ASSERT_TRUE(answer) << answer.error().message;
  const auto& choice = answer->at("choices").at(0);
  const auto& message = choice.at("message");
  EXPECT_TRUE(message.at("content").is_null());
  EXPECT_EQ(message.at("reasoning_content"), "think");
  EXPECT_EQ(message.at("tool_calls").at(0).at("function").at("arguments"), "{\"a\":1}");
  EXPECT_EQ(message.at("tool_calls").at(0).at("id"), "c1");
  EXPECT_EQ(choice.at("logprobs").at("content").as_array().size(), 2U);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_EQ(answer->at("usage").at("total_tokens"), 3);
  EXPECT_EQ(answer->at("created"), 5);
}

TEST(ChatAssembler, ErrorsOfTheStreamComeBack) {
  ChatAssembler assembler;
  const std::string event =
      openai_error_event({.code = Code::Internal, .message = "lost", .reason = "r"});
  ASSERT_TRUE(event.starts_with("data: ") && event.ends_with("\n\n"));
  const auto fed = assembler.feed(std::string_view(event).substr(6, event.size() - 8));
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().message, "lost");
  EXPECT_EQ(assembler.feed("nonsense").error().code, Code::BadGateway);
  EXPECT_EQ(assembler.feed(R"({"choices":[{"index":999}]})").error().code, Code::BadGateway);
  EXPECT_EQ(assembler.feed(R"({"choices":[7]})").error().code, Code::BadGateway);
  EXPECT_FALSE(assembler.complete());
}

TEST(ChatChunks, OneChunkHoldsAllThatADeltaHas) {
  const ChatChunkWriter writer({.id = "i", .created = 1, .model = "m"}, false);
  std::string out;
  writer.delta(out, 1,
               {.content = "a",
                .reasoning_content = "r",
                .tool_calls = {{.index = 0, .id = "c", .name = "f", .arguments = "{"},
                               {.index = 1, .id = {}, .name = {}, .arguments = "\"}"}},
                .logprobs = {{.bytes = "\xC3", .logprob = -0.25F, .top = {{"a", -1.0F}}}}});
  EXPECT_EQ(
      out,
      R"(data: {"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[)"
      R"({"index":1,"delta":{"reasoning_content":"r","content":"a","tool_calls":[)"
      R"({"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{"}},)"
      R"({"index":1,"function":{"arguments":"\"}"}}]},"logprobs":{"content":[{"token":)"
      "\"\xEF\xBF\xBD\""
      R"(,"logprob":-0.25,"bytes":[195],"top_logprobs":[{"token":"a","logprob":-1,"bytes":[97]}]}],)"
      R"("refusal":null},"finish_reason":null}]})"
      "\n\n");
}

TEST(ChatAssembler, CallsReasoningAndLogprobsAreTheSameByChunksAndWithout) {
  const AnswerHead head{.id = "i", .created = 1, .model = "m"};
  const ChatChunkWriter writer(head, false);
  const ChatDelta deltas[] = {
      {.reasoning_content = "Hm. "},
      {.content = "So", .logprobs = {{.bytes = "So", .logprob = -1e30F}}},
      {.tool_calls = {{.index = 0, .id = "c", .name = "f", .arguments = ""}}},
      {.tool_calls = {{.index = 0, .arguments = "{}"}, {.index = 1, .id = "d", .name = "g"}}}};
  std::string stream;
  ChatAssembler direct;
  direct.begin(head);
  writer.role(stream, 0);
  for (const ChatDelta& delta : deltas) {
    writer.delta(stream, 0, delta);
    direct.add(0, delta);
  }
  writer.finish(stream, 0, {}, "tool_calls", nullptr);
  direct.finish_choice(0, "tool_calls");
  ChatAssembler assembled;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    ASSERT_TRUE(assembled.feed(stream.substr(at + 6, end - at - 6)));
    at = end + 2;
  }
  const std::string answer = direct.answer();
  EXPECT_NE(answer.find(R"("reasoning_content":"Hm. ")"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"({"id":"d","type":"function","function":{"name":"g","arguments":""}})"),
            std::string::npos)
      << answer;
  EXPECT_NE(answer.find(R"("logprob":-9999)"), std::string::npos) << answer;
  // The numbers' last digits are the JSON library's.
  EXPECT_EQ(assembled.answer().substr(0, assembled.answer().find("logprobs")),
            answer.substr(0, answer.find("logprobs")));
}

}  // namespace
}  // namespace flotilla::api
