#include "api/chat_seen.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

std::string event(std::string_view id, std::string_view choice) {
  return R"(data: {"id":")" + std::string(id) +
         R"(","object":"chat.completion.chunk","choices":[)" + std::string(choice) + "]}\n\n";
}
const std::string kRole = event("a", R"({"delta":{"role":"assistant"}})");
const std::string kText = event("a", R"({"delta":{"content":"sea"},"finish_reason":null})");
const std::string kEnd = event("a", R"({"delta":{},"finish_reason":"stop"})");
const std::string kDone = "data: [DONE]\n\n";

std::string fault_of(const std::string& body) { return read_streamed_chat(body).fault; }

TEST(ChatSeen, a_stream_is_its_text_its_end_and_its_counts) {
  const std::string usage =
      R"(data: {"id":"a","object":"chat.completion.chunk","choices":[],"usage":)"
      R"({"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}})"
      "\r\n\r\n";
  const ChatSeen seen =
      read_streamed_chat(": ping\n\n" + kRole + kText + kText + kEnd + usage + kDone);
  EXPECT_EQ(seen.fault, "");
  EXPECT_EQ(seen.text, "seasea");
  EXPECT_EQ(seen.finish_reason, "stop");
  EXPECT_TRUE(seen.has_usage);
  EXPECT_EQ(seen.usage.prompt_tokens, 3);
  EXPECT_EQ(seen.usage.completion_tokens, 2);
  EXPECT_EQ(seen.total_tokens, 5);
}

TEST(ChatSeen, what_is_wrong_in_a_stream_is_named) {
  EXPECT_EQ(fault_of(kRole + kText + kEnd), "the stream does not end with [DONE]");
  EXPECT_EQ(fault_of(kRole + kText + kDone), "there is no finish_reason");
  EXPECT_EQ(fault_of(kText + kEnd + kDone), "the first delta has no role \"assistant\"");
  EXPECT_EQ(fault_of(kRole + kEnd + kText + kDone), "text comes after finish_reason");
  EXPECT_EQ(fault_of(kRole + kEnd + kEnd + kDone), "finish_reason comes twice");
  EXPECT_EQ(fault_of(kRole + kEnd + kDone + kText), "something comes after [DONE]");
  EXPECT_EQ(fault_of(kRole + event("b", R"({"delta":{},"finish_reason":"stop"})") + kDone),
            "not all events have the same id");
  EXPECT_NE(fault_of(kRole + "data: {\"x\":\"\xff\"}\n\n" + kDone).find("not JSON"),
            std::string::npos);
  EXPECT_EQ(fault_of(kRole + event("a", R"({"delta":{"content":"\ufffd"}})") + kEnd + kDone),
            "the text has U+FFFD");
  EXPECT_NE(fault_of("data: {\"error\":{\"message\":\"lost\"}}\n\n").find("lost"),
            std::string::npos);
}

TEST(ChatSeen, a_whole_answer_is_read_alike) {
  const ChatSeen seen =
      read_whole_chat(R"({"id":"a","object":"chat.completion","choices":[{"index":0,"message":)"
                      R"({"role":"assistant","content":"sea"},"finish_reason":"length"}],)"
                      R"("usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}})");
  EXPECT_EQ(seen.fault, "");
  EXPECT_EQ(seen.text, "sea");
  EXPECT_EQ(seen.finish_reason, "length");
  EXPECT_EQ(seen.total_tokens, 4);
  EXPECT_EQ(read_whole_chat("{}").fault, "the answer has no choice with a message");
  EXPECT_NE(read_whole_chat("<html>").fault.find("not JSON"), std::string::npos);
}

}  // namespace
}  // namespace flotilla::api
