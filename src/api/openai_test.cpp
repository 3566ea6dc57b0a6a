#include "api/openai.h"

#include <string>

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

// A request with `fields` added to the least that is valid.
Result<ChatRequest> parse_with(const std::string& fields) {
  return parse_chat_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}])" +
                            (fields.empty() ? "" : "," + fields) + "}");
}

Result<ChatRequest> parse_messages(const std::string& messages) {
  return parse_chat_request(R"({"model":"m","messages":)" + messages + "}");
}

TEST(ChatRequest, DefaultsAreOpenAis) {
  const auto request = parse_with("");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->model, "m");
  ASSERT_EQ(request->messages.size(), 1U);
  EXPECT_EQ(request->messages[0].role, "user");
  EXPECT_EQ(request->messages[0].content, "hi");
  EXPECT_FALSE(request->stream || request->include_usage || request->ignore_eos || request->seed);
  EXPECT_EQ(request->max_tokens, std::nullopt);
  EXPECT_EQ(request->temperature, 1);
  EXPECT_EQ(request->top_p, 1);
  EXPECT_EQ(request->n, 1);
  EXPECT_TRUE(request->enable_thinking);
}

TEST(ChatRequest, ReadsEveryHonouredField) {
  const auto request = parse_with(
      R"("stream":true,"stream_options":{"include_usage":true},"max_tokens":50,)"
      R"("max_completion_tokens":3,"stop":["a","b"],"temperature":0.5,"top_p":0.9,"top_k":40,)"
      R"("min_p":0.05,"seed":-1,"n":2,"logit_bias":{"5":-100,"7":1.5},"presence_penalty":-2,)"
      R"("frequency_penalty":2,"repetition_penalty":1.1,"ignore_eos":true,"session_id":"s",)"
      R"("user":"u","prompt_cache_key":"k","metadata":{"a":"b"},"timeout_s":2.5,)"
      R"("enable_thinking":false,"thinking_budget":9,"chat_template_kwargs":{"x":[1]},"reasoning_effort":"low",)"
      R"("continue_final_message":true,"response_format":{"type":"text"})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->stream && request->include_usage && request->ignore_eos);
  EXPECT_EQ(request->max_tokens, 3);
  EXPECT_EQ(request->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->temperature, 0.5);
  EXPECT_EQ(request->top_p, 0.9);
  EXPECT_EQ(request->top_k, 40);
  EXPECT_EQ(request->min_p, 0.05);
  EXPECT_EQ(request->seed, UINT64_MAX);
  EXPECT_EQ(request->n, 2);
  EXPECT_EQ(request->logit_bias,
            (std::vector<std::pair<std::int32_t, float>>{{5, -100}, {7, 1.5}}));
  EXPECT_EQ(request->presence_penalty, -2);
  EXPECT_EQ(request->frequency_penalty, 2);
  EXPECT_EQ(request->repetition_penalty, 1.1);
  EXPECT_EQ(request->session_id, "s");
  EXPECT_EQ(request->user, "u");
  EXPECT_EQ(request->prompt_cache_key, "k");
  EXPECT_EQ(request->timeout_s, 2.5);
  EXPECT_FALSE(request->enable_thinking);
  EXPECT_EQ(request->thinking_budget, 9);
  EXPECT_TRUE(request->continue_final_message);
  EXPECT_EQ(request->template_kwargs, (std::vector<std::pair<std::string, std::string>>{
                                          {"x", "[1]"}, {"reasoning_effort", "\"low\""}}));
}

TEST(ChatRequest, AcceptsWhatAsksForNothing) {
  for (const char* fields :
       {R"("temperature":null,"stop":null,"tools":null,"seed":null,"logprobs":null,"n":null)",
        R"("tools":[],"tool_choice":"none","functions":[],"parallel_tool_calls":true)",
        R"("tool_choice":"auto","logprobs":false,"top_logprobs":0,"modalities":["text"])",
        R"("store":false,"service_tier":"auto","safety_identifier":"x","verbosity":"low")",
        R"("audio":null,"prediction":null,"web_search_options":null,"response_format":null)",
        R"("some_future_field":{"deep":[1,2,3]},"stop":[],"stop_token_ids":[1],"top_k":-1)",
        R"("max_tokens":4.0,"seed":18446744073709551615,"stream_options":null)"}) {
    const auto request = parse_with(fields);
    EXPECT_TRUE(request) << fields << ": " << request.error().message;
  }
}

struct Bad {
  std::string fields;
  std::string param;
  std::string says;  // must be in the message
};

TEST(ChatRequest, RefusesBadFieldsByName) {
  const std::vector<Bad> table = {
      {R"("temperature":-1)", "temperature", "temperature is -1; it must be a number from 0 to 2"},
      {R"("temperature":"hot")", "temperature", "\"hot\""},
      {R"("temperature":2.1)", "temperature", "2.1"},
      {R"("top_p":1.5)", "top_p", "0 to 1"},
      {R"("top_k":-2)", "top_k", "-2"},
      {R"("top_k":1.5)", "top_k", "1.5"},
      {R"("min_p":-0.1)", "min_p", "-0.1"},
      {R"("max_tokens":0)", "max_tokens", "max_tokens is 0; it must be an integer of at least 1"},
      {R"("max_tokens":-5)", "max_tokens", "-5"},
      {R"("max_tokens":1e300)", "max_tokens", "max_tokens"},
      {R"("max_tokens":"5")", "max_tokens", "\"5\""},
      {R"("max_completion_tokens":0)", "max_completion_tokens", "0"},
      {R"("n":0)", "n", "1 to 16"},
      {R"("n":17)", "n", "17"},
      {R"("stop":[""])", "stop", "stop"},
      {R"("stop":5)", "stop", "5"},
      {R"("stop":[1])", "stop", "1"},
      {R"("seed":1.5)", "seed", "1.5"},
      {R"("seed":"x")", "seed", "x"},
      {R"("stream":"yes")", "stream", "yes"},
      {R"("stream_options":1)", "stream_options", "object"},
      {R"("stream_options":{"include_usage":1})", "stream_options.include_usage", "1"},
      {R"("logit_bias":{"abc":1})", "logit_bias", "\"abc\""},
      {R"("logit_bias":{"-1":1})", "logit_bias", "\"-1\""},
      {R"("logit_bias":{"5":101})", "logit_bias.5", "101"},
      {R"("logit_bias":[1])", "logit_bias", "object"},
      {R"("presence_penalty":-2.5)", "presence_penalty", "-2.5"},
      {R"("frequency_penalty":3)", "frequency_penalty", "3"},
      {R"("repetition_penalty":0)", "repetition_penalty", "0"},
      {R"("timeout_s":0)", "timeout_s", "0"},
      {R"("user":5)", "user", "5"},
      {R"("metadata":5)", "metadata", "5"},
      {R"("ignore_eos":1)", "ignore_eos", "1"},
      {R"("reasoning_effort":"extreme")", "reasoning_effort", "extreme"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs", "object"},
      {R"("response_format":{"type":"xml"})", "response_format.type", "xml"},
      {R"("response_format":{})", "response_format.type", "missing"},
      {R"("service_tier":"flex")", "service_tier", "flex"},
      {R"("logprobs":1)", "logprobs", "logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "21"},
      // Known and not honoured.
      {R"("functions":[{}])", "functions", "functions"},
      {R"("function_call":{"name":"f"})", "function_call", "function"},
      {R"("top_logprobs":3)", "top_logprobs", "top_logprobs"},
      {R"("audio":{"voice":"x"})", "audio", "audio"},
      {R"("modalities":["text","audio"])", "modalities", "modalities"},
      {R"("web_search_options":{"a":1})", "web_search_options", "web_search_options"},
      {R"("prediction":{"type":"content"})", "prediction", "prediction"},
      {R"("store":true)", "store", "store"},
  };
  for (const Bad& bad : table) {
    const auto request = parse_with(bad.fields);
    ASSERT_FALSE(request) << bad.fields;
    EXPECT_EQ(request.error().code, Code::InvalidArgument) << bad.fields;
    EXPECT_EQ(request.error().param, bad.param) << bad.fields;
    EXPECT_NE(request.error().message.find(bad.says), std::string::npos)
        << bad.fields << ": " << request.error().message;
  }
}

TEST(ChatRequest, RefusesWhatItKnowsAndDoesNotDo) {
  for (const auto& [fields, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("moderation":{"model":"m"})", "moderation"},
           {R"("stream_options":{"include_obfuscation":true})",
            "stream_options.include_obfuscation"},
           {R"("verbosity":"shouting")", "verbosity"},
           {R"("safety_identifier":5)", "safety_identifier"},
           {R"("prompt_cache_retention":"always")", "prompt_cache_retention"},
           {R"("prompt_cache_options":{"mode":"never"})", "prompt_cache_options.mode"},
           {R"("prompt_cache_options":{"prewarm":true})", "prompt_cache_options.prewarm"}}) {
    const auto request = parse_with(fields);
    ASSERT_FALSE(request) << fields;
    EXPECT_EQ(request.error().param, param) << request.error().message;
  }
  EXPECT_TRUE(
      parse_with(R"("moderation":null,"stream_options":{"include_obfuscation":false},)"
                 R"("verbosity":"low","safety_identifier":"s","prompt_cache_retention":"24h",)"
                 R"("prompt_cache_options":{"mode":"implicit","ttl":"30m"},)"
                 R"("reasoning_effort":"max")"));
  const auto spoken =
      parse_messages(R"([{"role":"user","content":"a"},{"role":"assistant","audio":{"id":"x"}}])");
  ASSERT_FALSE(spoken);
  EXPECT_EQ(spoken.error().param, "messages[1].audio");
}

TEST(ChatRequest, ARefusalIsWhatTheAssistantSaid) {
  const auto request =
      parse_messages(R"([{"role":"assistant","content":null,"refusal":"I won't."}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages[0].content, "I won't.");
}

TEST(ChatRequest, RefusesBodiesThatAreNoRequest) {
  for (const char* body :
       {"", "  ", "[1,2,3]", "5", "{", "{\"model\":", "\"x\"", "null", "{\"a\":1}x"}) {
    const auto request = parse_chat_request(body);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().code, Code::InvalidArgument) << body;
  }
  EXPECT_EQ(parse_chat_request(R"({"messages":[{"role":"user","content":"x"}]})").error().param,
            "model");
  EXPECT_EQ(parse_chat_request(R"({"model":"m"})").error().param, "messages");
}

TEST(ChatMessages, ReadsEveryRoleAndForm) {
  const auto request = parse_messages(
      R"([{"role":"system","content":"a"},{"role":"developer","content":"b"},)"
      R"({"role":"user","content":[{"type":"text","text":"Say"},{"type":"text","text":" hi"}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
      R"("function":{"name":"w","arguments":"{\"x\":1}"}}]},)"
      R"({"role":"tool","tool_call_id":"c1","name":"w","content":"sunny"},)"
      R"({"role":"user","content":"","refusal":null}])");
  ASSERT_TRUE(request) << request.error().message;
  const auto& m = request->messages;
  ASSERT_EQ(m.size(), 6U);
  EXPECT_EQ(m[0].role, "system");
  EXPECT_EQ(m[1].role, "system");
  EXPECT_EQ(m[1].content, "b");
  EXPECT_EQ(m[2].content, "Say hi");
  ASSERT_EQ(m[3].tool_calls.size(), 1U);
  EXPECT_EQ(m[3].tool_calls[0].id, "c1");
  EXPECT_EQ(m[3].tool_calls[0].name, "w");
  EXPECT_EQ(m[3].tool_calls[0].arguments, "{\"x\":1}");
  EXPECT_EQ(m[4].role, "tool");
  EXPECT_EQ(m[4].tool_call_id, "c1");
  EXPECT_EQ(m[5].content, "");
}

TEST(ChatMessages, RefusesBadOnesByPlace) {
  const std::vector<Bad> table = {
      {"[]", "messages", "messages is an empty list"},
      {"5", "messages", "list"},
      {"[5]", "messages[0]", "5"},
      {"[[[[]]]]", "messages[0]", "object"},
      {R"([{"content":"x"}])", "messages[0].role", "role"},
      {R"([{"role":"wizard","content":"x"}])", "messages[0].role", "\"wizard\""},
      {R"([{"role":"user","content":"a"},{"role":"user"}])", "messages[1].content", "missing"},
      {R"([{"role":"user","content":null}])", "messages[0].content", "missing"},
      {R"([{"role":"assistant","content":null}])", "messages[0].content", "tool_calls"},
      {R"([{"role":"user","content":5}])", "messages[0].content", "5"},
      {R"([{"role":"user","content":["a"]}])", "messages[0].content[0]", "\"a\""},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text",
       "missing"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
       "messages[0].content[0]", "image"},
      {R"([{"role":"user","content":[{"type":"input_audio"}]}])", "messages[0].content[0]",
       "audio"},
      {R"([{"role":"user","content":[{"type":"dance"}]}])", "messages[0].content[0].type", "dance"},
      {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls[0].function",
       "missing"},
      {R"([{"role":"assistant","tool_calls":[5]}])", "messages[0].tool_calls[0]", "5"},
  };
  for (const Bad& bad : table) {
    const auto request = parse_messages(bad.fields);
    ASSERT_FALSE(request) << bad.fields;
    EXPECT_EQ(request.error().param, bad.param) << bad.fields << ": " << request.error().message;
    EXPECT_NE(request.error().message.find(bad.says), std::string::npos)
        << bad.fields << ": " << request.error().message;
  }
}

}  // namespace
}  // namespace flotilla::api
