#include "api/anthropic.h"

#include <gtest/gtest.h>

#include "api/chat_chunks.h"
#include "api/json.h"

namespace flotilla::api {
namespace {

json::Object parse(std::string_view text) {
  auto object = json::parse_object(text);
  EXPECT_TRUE(object) << text;
  return object ? std::move(*object) : json::Object{};
}

json::Object chat_of(const std::string& body) {
  const auto request = parse_messages_request(body);
  EXPECT_TRUE(request) << body << ": " << request.error().message;
  return request ? parse(request->chat) : json::Object{};
}

// The least that is valid, with `fields` added.
std::string with(const std::string& fields) {
  return R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}])" +
         (fields.empty() ? "" : "," + fields) + "}";
}

std::string messages_of(const std::string& messages) {
  const json::Object chat = chat_of(R"({"model":"m","max_tokens":9,"messages":)" + messages + "}");
  return json::to_text(chat.at("messages"));
}

Error refused(const std::string& body) {
  const auto request = parse_messages_request(body);
  EXPECT_FALSE(request) << body;
  return request ? Error{} : request.error();
}

TEST(MessagesRequest, IsAChatRequest) {
  const json::Object chat = chat_of(with(
      R"("system":[{"type":"text","text":"Be "},{"type":"text","text":"brief.","cache_control":{}}],)"
      R"("temperature":0.5,"top_p":0.9,"top_k":40,"stop_sequences":["END"],"seed":7,)"
      R"("metadata":{"user_id":"u"},"service_tier":"auto","future":1)"));
  EXPECT_EQ(json::to_text(chat.at("messages")),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
  EXPECT_EQ(chat.at("model"), "m");
  EXPECT_EQ(chat.at("max_tokens"), 9);
  EXPECT_EQ(chat.at("temperature"), 0.5);
  EXPECT_EQ(chat.at("top_k"), 40);
  EXPECT_EQ(json::to_text(chat.at("stop")), R"(["END"])");
  EXPECT_EQ(chat.at("seed"), 7);
  EXPECT_EQ(chat.at("user"), "u");
  EXPECT_EQ(chat.at("enable_thinking"), false);
  EXPECT_FALSE(chat.contains("stream") || chat.contains("tools"));
}

TEST(MessagesRequest, AStreamAsksForItsUsage) {
  const json::Object chat = chat_of(with(R"("stream":true)"));
  EXPECT_EQ(chat.at("stream"), true);
  EXPECT_EQ(chat.at("stream_options").at("include_usage"), true);
}

TEST(MessagesRequest, ToolResultsBecomeMessagesOfTheirOwnWhereTheyStand) {
  EXPECT_EQ(
      messages_of(
          R"([{"role":"user","content":"weather?"},)"
          R"({"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},)"
          R"({"type":"redacted_thinking","data":"?"},{"type":"text","text":"Let me see."},)"
          R"({"type":"tool_use","id":"t1","name":"w","input":{"city":"Oslo"}},)"
          R"({"type":"tool_use","id":"t2","name":"w","input":{}}]},)"
          R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"sun"},)"
          R"({"type":"tool_result","tool_use_id":"t2","is_error":true,)"
          R"("content":[{"type":"text","text":"no "},{"type":"text","text":"city"}]},)"
          R"({"type":"text","text":"Well?"}]}])"),
      R"([{"role":"user","content":"weather?"},)"
      R"({"role":"assistant","content":"Let me see.","reasoning_content":"hm","tool_calls":[)"
      R"({"id":"t1","type":"function","function":{"name":"w","arguments":"{\"city\":\"Oslo\"}"}},)"
      R"({"id":"t2","type":"function","function":{"name":"w","arguments":"{}"}}]},)"
      R"({"role":"tool","content":"sun","tool_call_id":"t1"},)"
      R"({"role":"tool","content":"Error: no city","tool_call_id":"t2"},)"
      R"({"role":"user","content":"Well?"}])");
}

TEST(MessagesRequest, ALastMessageOfTheAssistantsIsContinued) {
  const json::Object chat =
      chat_of(R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},)"
              R"({"role":"assistant","content":"My name is"}]})");
  EXPECT_EQ(chat.at("continue_final_message"), true);
  EXPECT_FALSE(chat_of(with("")).contains("continue_final_message"));
}

TEST(MessagesRequest, ToolsAndTheirChoice) {
  const json::Object chat =
      chat_of(with(R"("tools":[{"name":"w","description":"d","input_schema":{"type":"object"}}],)"
                   R"("tool_choice":{"type":"tool","name":"w","disable_parallel_tool_use":true})"));
  EXPECT_EQ(json::to_text(chat.at("tools")),
            R"([{"type":"function","function":{"name":"w","description":"d",)"
            R"("parameters":{"type":"object"}}}])");
  EXPECT_EQ(json::to_text(chat.at("tool_choice")),
            R"({"type":"function","function":{"name":"w"}})");
  EXPECT_EQ(chat.at("parallel_tool_calls"), false);
  EXPECT_EQ(chat_of(with(R"("tool_choice":{"type":"any"})")).at("tool_choice"), "required");
  EXPECT_EQ(chat_of(with(R"("tool_choice":{"type":"auto"})")).at("tool_choice"), "auto");
  EXPECT_EQ(chat_of(with(R"("tool_choice":{"type":"none"})")).at("tool_choice"), "none");
}

TEST(MessagesRequest, ThinkingAndSchemas) {
  const json::Object thinks =
      chat_of(with(R"("thinking":{"type":"enabled","budget_tokens":2000})"));
  EXPECT_EQ(thinks.at("enable_thinking"), true);
  EXPECT_EQ(thinks.at("thinking_budget"), 2000);
  EXPECT_EQ(chat_of(with(R"("thinking":{"type":"disabled"})")).at("enable_thinking"), false);
  const json::Object chat = chat_of(with(
      R"("output_config":{"effort":"max","format":{"type":"json_schema","schema":{"type":"object"}}})"));
  EXPECT_EQ(chat.at("reasoning_effort"), "high");
  EXPECT_EQ(json::to_text(chat.at("response_format").at("json_schema").at("schema")),
            R"({"type":"object"})");
}

TEST(MessagesRequest, WhatIsWrongIsNamed) {
  const auto named = [](const std::string& body, const std::string& field,
                        const std::string& word) {
    const Error error = refused(body);
    EXPECT_EQ(error.code, Code::InvalidArgument) << body;
    EXPECT_EQ(error.param, field) << body;
    EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
  };
  named(R"({"max_tokens":9,"messages":[{"role":"user","content":"hi"}]})", "model", "missing");
  named(R"({"model":"m","messages":[{"role":"user","content":"hi"}]})", "max_tokens", "missing");
  named(R"({"model":"m","max_tokens":9})", "messages", "missing");
  named(R"({"model":"m","max_tokens":9,"messages":[]})", "messages", "at least one");
  named(R"({"model":"m","max_tokens":0,"messages":[{"role":"user","content":"hi"}]})", "max_tokens",
        "0");
  named(R"({"model":"m","max_tokens":9,"messages":[{"role":"wizard","content":"hi"}]})",
        "messages[0].role", "wizard");
  named(R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":[]}]})",
        "messages[0].content", "at least one");
  named(R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image"}]}]})",
        "messages[0].content[0]", "image");
  named(R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":[)"
        R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},)"
        R"({"type":"image","source":{}}]}]}]})",
        "messages[0].content[0].content[1]", "image");
  named(R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":)"
        R"([{"type":"tool_use","id":"a","name":"b","input":{}}]}]})",
        "messages[0].content[0]", "tool_use");
  named(with(R"("stop_sequences":[""])"), "stop_sequences[0]", "1 to");
  named(with(R"("temperature":"hot")"), "temperature", "hot");
  named(with(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])"), "tools[0]",
        "web_search_20250305");
  named(with(R"("tools":[{"name":"w"}])"), "tools[0].input_schema", "missing");
  named(with(R"("tool_choice":{"type":"some"})"), "tool_choice.type", "some");
  named(with(R"("mcp_servers":[{}])"), "mcp_servers", "not supported");
  named(with(R"("thinking":{"type":"enabled"})"), "thinking.budget_tokens", "missing");
}

TEST(MessagesRequest, RefusesWhatItKnowsAndDoesNotDo) {
  const auto named = [](const std::string& body, const std::string& field) {
    const Error error = refused(body);
    EXPECT_EQ(error.param, field) << error.message;
    EXPECT_EQ(error.reason, "unsupported_parameter") << error.message;
  };
  for (const std::string name :
       {"user_profile_id", "workspace_id", "billing_policy", "fallback_credit_token", "thread"})
    named(with('"' + name + R"(":"x")"), name);
  named(with(R"("fallbacks":[{"model":"n"}])"), "fallbacks");
  named(with(R"("compaction":{"type":"x"})"), "compaction");
  const std::string tool = R"("tools":[{"name":"w","input_schema":{"type":"object"},)";
  named(with(tool + R"("defer_loading":true}])"), "tools[0].defer_loading");
  named(with(tool + R"("input_examples":[{}]}])"), "tools[0].input_examples");
  named(with(tool + R"("allowed_callers":["code_execution_20260120"]}])"),
        "tools[0].allowed_callers");
  const auto call = [](const std::string& fields) {
    return R"({"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[)"
           R"({"type":"tool_use","id":"a","name":"b","input":{},)" +
           fields + "}]}]}";
  };
  named(call(R"("caller":{"type":"code_execution_20260120","tool_id":"x"})"),
        "messages[0].content[0].caller.type");
  named(call(R"("toolset_name":"browser")"), "messages[0].content[0].toolset_name");
  EXPECT_TRUE(parse_messages_request(call(R"("caller":{"type":"direct"},"toolset_name":null)")));
  EXPECT_TRUE(parse_messages_request(
      with(tool + R"("defer_loading":false,"input_examples":[],"allowed_callers":["direct"],)"
                  R"("eager_input_streaming":true,"cache_control":{"type":"ephemeral"}}])")));
  EXPECT_EQ(refused(with(R"("cache_control":{"type":"eternal"})")).param, "cache_control.type");
}

TEST(MessagesRequest, ErrorsOfTheChatRequestNameWhatWasSent) {
  const auto request = parse_messages_request(with(""));
  ASSERT_TRUE(request);
  const auto told = [&](const std::string& param) {
    const std::string body = request->answer->error(
        {.code = Code::InvalidArgument, .message = param + " is wrong", .param = param});
    return std::string(parse(body).at("error").at("message").get_string());
  };
  EXPECT_EQ(told("tools[1].function.parameters.x"), "tools[1].input_schema.x is wrong");
  EXPECT_EQ(told("tools[1].function.name"), "tools[1].name is wrong");
  EXPECT_EQ(told("response_format.json_schema.schema"), "output_config.format.schema is wrong");
}

TEST(MessagesRequest, ErrorsHaveAnthropicsForm) {
  EXPECT_EQ(anthropic_error_body({.code = Code::NotFound, .message = "no \"x\""}),
            R"({"type":"error","error":{"type":"not_found_error","message":"no \"x\""}})");
  EXPECT_EQ(parse(anthropic_error_body({.code = Code::ResourceExhausted, .message = ""}))
                .at("error")
                .at("type"),
            "rate_limit_error");
  EXPECT_EQ(
      parse(anthropic_error_body({.code = Code::TooLarge, .message = ""})).at("error").at("type"),
      "request_too_large");
  EXPECT_EQ(parse(anthropic_error_body({.code = Code::Unavailable, .message = ""}))
                .at("error")
                .at("type"),
            "overloaded_error");
}

TEST(CountRequest, NeedsNoLimitAndAnswersTheCount) {
  auto request =
      parse_count_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->answer->answer(R"({"prompt_tokens":12})"), R"({"input_tokens":12})");
}

// --- The answer ---

std::string chunk(const std::string& delta, const std::string& rest = R"("finish_reason":null)") {
  return R"({"id":"chatcmpl-r1","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":)" +
         delta + "," + rest + "}]}";
}
const std::string kUsage =
    R"({"id":"chatcmpl-r1","created":5,"model":"m","choices":[],"usage":{"prompt_tokens":10,)"
    R"("completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}},"x_flotilla":{"node":"n"}})";

std::unique_ptr<AnswerForm> form() {
  auto request = parse_messages_request(with(R"("stream":true)"));
  EXPECT_TRUE(request);
  return std::move(request->answer);
}

TEST(MessagesAnswer, StreamsTextInOneBlock) {
  const auto answer = form();
  EXPECT_EQ(answer->keep_alive(), ": keep-alive\n\n");
  EXPECT_EQ(
      answer->event(chunk(R"({"role":"assistant","content":""})")),
      "event: message_start\ndata: "
      R"({"type":"message_start","message":{"id":"msg_r1","type":"message","role":"assistant",)"
      R"("model":"m","content":[],"stop_reason":null,"stop_sequence":null,)"
      R"("usage":{"input_tokens":0,"cache_creation_input_tokens":0,)"
      R"("cache_read_input_tokens":0,"output_tokens":0}}})"
      "\n\n");
  EXPECT_EQ(answer->keep_alive(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(
      answer->event(chunk(R"({"content":"a\"b"})")),
      "event: content_block_start\ndata: "
      R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
      "\n\nevent: content_block_delta\ndata: "
      R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\"b"}})"
      "\n\n");
  EXPECT_EQ(answer->event(chunk("{}", R"("finish_reason":"length")")), "");
  EXPECT_EQ(answer->event(kUsage), "");
  EXPECT_EQ(answer->event("[DONE]"),
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
            "event: message_delta\ndata: "
            R"({"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},)"
            R"("usage":{"input_tokens":7,"cache_creation_input_tokens":0,)"
            R"("cache_read_input_tokens":3,"output_tokens":4},"x_flotilla":{"node":"n"}})"
            "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

TEST(MessagesAnswer, ThinkingTextAndToolsAreBlocksOfTheirOwn) {
  const auto answer = form();
  std::string all;
  all += answer->event(chunk(R"({"role":"assistant","content":""})"));
  all += answer->event(chunk(R"({"reasoning_content":"hm"})"));
  all += answer->event(chunk(R"({"content":"Now."})"));
  all += answer->event(chunk(
      R"({"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"w","arguments":""}}]})"));
  all +=
      answer->event(chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]})"));
  all += answer->event(chunk(
      R"({"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"v","arguments":"{}"}}]})"));
  all += answer->event(chunk("{}", R"("finish_reason":"tool_calls")"));
  all += answer->event("[DONE]");
  const auto at = [&all](std::string_view part) {
    const auto found = all.find(part);
    EXPECT_NE(found, std::string::npos) << part << "\n" << all;
    return found;
  };
  EXPECT_LT(at(R"("index":0,"content_block":{"type":"thinking","thinking":"","signature":""})"),
            at(R"("delta":{"type":"thinking_delta","thinking":"hm"})"));
  EXPECT_LT(at(R"("delta":{"type":"signature_delta","signature":""})"),
            at(R"({"type":"content_block_stop","index":0})"));
  EXPECT_LT(at(R"({"type":"content_block_stop","index":1})"),
            at(R"("index":2,"content_block":{"type":"tool_use","id":"c1","name":"w","input":{}})"));
  EXPECT_LT(at(R"("index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"})"),
            at(R"({"type":"content_block_stop","index":2})"));
  EXPECT_LT(at(R"("index":3,"content_block":{"type":"tool_use","id":"c2","name":"v","input":{}})"),
            at(R"({"type":"content_block_stop","index":3})"));
  at(R"("stop_reason":"tool_use")");
}

TEST(MessagesAnswer, AnErrorInTheStreamIsAnEvent) {
  const auto answer = form();
  answer->event(chunk(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(answer->event(R"({"error":{"message":"gone","type":"server_error","code":"x"}})"),
            "event: error\ndata: "
            R"({"type":"error","error":{"type":"api_error","message":"gone"}})"
            "\n\n");
}

TEST(MessagesAnswer, AWholeMessage) {
  const auto answer = form();
  const json::Object message = parse(answer->answer(
      R"({"id":"chatcmpl-r1","created":5,"model":"m","choices":[{"index":0,"message":{"role":)"
      R"("assistant","content":"hi","reasoning_content":"hm","tool_calls":[{"id":"c","type":)"
      R"("function","function":{"name":"w","arguments":"{\"a\":[1]}"}}]},"finish_reason":"stop",)"
      R"("stop_reason":"END"}],"usage":{"prompt_tokens":10,"completion_tokens":4}})"));
  EXPECT_EQ(message.at("id"), "msg_r1");
  EXPECT_EQ(json::to_text(message.at("content")),
            R"([{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"hi"},)"
            R"({"type":"tool_use","id":"c","name":"w","input":{"a":[1]}}])");
  EXPECT_EQ(message.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(message.at("stop_sequence"), "END");
  EXPECT_EQ(message.at("usage").at("input_tokens"), 10);
  EXPECT_EQ(message.at("usage").at("output_tokens"), 4);
}

}  // namespace
}  // namespace flotilla::api
