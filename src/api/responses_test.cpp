#include "api/responses.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "api/kept_items.h"

namespace flotilla::api {
namespace {

json::Object parse(std::string_view text) {
  auto object = json::parse_object(text);
  EXPECT_TRUE(object) << text;
  return object ? std::move(*object) : json::Object{};
}

std::string with(const std::string& fields, const std::string& input = R"("hi")") {
  return R"({"model":"m","input":)" + input + (fields.empty() ? "" : "," + fields) + "}";
}

json::Object chat_of(const std::string& body) {
  const auto request = parse_responses_request(body);
  EXPECT_TRUE(request) << body << ": " << request.error().message;
  return request ? parse(request->chat) : json::Object{};
}

TEST(ResponsesRequest, IsAChatRequest) {
  const json::Object chat = chat_of(
      with(R"("instructions":"Be brief.","max_output_tokens":16,"temperature":0.5,"user":"u",)"
           R"("reasoning":{"effort":"low"},"top_logprobs":2,"parallel_tool_calls":false,)"
           R"("tools":[{"type":"function","name":"w","description":"d","strict":true,)"
           R"("parameters":{"type":"object"}}],"tool_choice":{"type":"function","name":"w"},)"
           R"("text":{"verbosity":"low","format":{"type":"json_schema","name":"s","strict":true,)"
           R"("schema":{"type":"object"}}},"include":["reasoning.encrypted_content"],)"
           R"("store":false,"truncation":"disabled","service_tier":"auto","metadata":{"a":"b"})"));
  EXPECT_EQ(json::to_text(chat.at("messages")),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
  EXPECT_EQ(chat.at("model"), "m");
  EXPECT_EQ(chat.at("max_completion_tokens"), 16);
  EXPECT_EQ(chat.at("reasoning_effort"), "low");
  EXPECT_EQ(chat.at("top_logprobs"), 2);
  EXPECT_EQ(chat.at("parallel_tool_calls"), false);
  EXPECT_EQ(json::to_text(chat.at("tools")),
            R"([{"type":"function","function":{"name":"w","description":"d",)"
            R"("parameters":{"type":"object"},"strict":true}}])");
  EXPECT_EQ(json::to_text(chat.at("tool_choice")),
            R"({"type":"function","function":{"name":"w"}})");
  EXPECT_EQ(json::to_text(chat.at("response_format")),
            R"({"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"},)"
            R"("strict":true}})");
  EXPECT_FALSE(chat.contains("stream") || chat.contains("store"));
}

TEST(ResponsesRequest, ItemsBecomeMessages) {
  const json::Object chat = chat_of(with(
      "",
      R"([{"role":"developer","content":"d"},)"
      R"({"type":"message","role":"user","content":[{"type":"input_text","text":"a"},)"
      R"({"type":"input_text","text":"b"}]},)"
      R"({"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},)"
      R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]},)"
      R"({"type":"function_call","call_id":"1","name":"w","arguments":"{}"},)"
      R"({"type":"function_call","call_id":"2","name":"v","arguments":"{}"},)"
      R"({"type":"function_call_output","call_id":"1","output":"sun"},)"
      R"({"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"x"}]},)"
      R"({"role":"assistant","content":"e"},{"role":"assistant","content":"f"}])"));
  EXPECT_EQ(json::to_text(chat.at("messages")),
            R"([{"role":"developer","content":"d"},{"role":"user","content":"ab"},)"
            R"({"role":"assistant","content":"c","reasoning_content":"hm","tool_calls":[)"
            R"({"id":"1","type":"function","function":{"name":"w","arguments":"{}"}},)"
            R"({"id":"2","type":"function","function":{"name":"v","arguments":"{}"}}]},)"
            R"({"role":"tool","content":"sun","tool_call_id":"1"},)"
            R"({"role":"tool","content":"x","tool_call_id":"2"},)"
            R"({"role":"assistant","content":"e"},{"role":"assistant","content":"f"}])");
}

TEST(ResponsesRequest, AllowedToolsAreChats) {
  const json::Object chat = chat_of(
      with(R"("tools":[{"type":"function","name":"w"}],"tool_choice":{"type":"allowed_tools",)"
           R"("mode":"required","tools":[{"type":"function","name":"w"}]})"));
  EXPECT_EQ(json::to_text(chat.at("tool_choice")),
            R"({"type":"allowed_tools","allowed_tools":{"mode":"required","tools":)"
            R"([{"type":"function","function":{"name":"w"}}]}})");
}

TEST(ResponsesRequest, WhatIsWrongIsNamed) {
  const auto named = [](const std::string& body, const std::string& field,
                        const std::string& word) {
    const auto request = parse_responses_request(body);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().code, Code::InvalidArgument) << body;
    EXPECT_EQ(request.error().param, field) << request.error().message;
    EXPECT_NE(request.error().message.find(word), std::string::npos) << request.error().message;
  };
  named(R"({"input":"hi"})", "model", "missing");
  named(R"({"model":"m"})", "input", "missing");
  named(R"({"model":"m","input":[]})", "input", "at least one");
  named(R"({"model":"m","input":5})", "input", "list");
  named(with("", R"([{"role":"wizard","content":"x"}])"), "input[0].role", "wizard");
  named(with("", R"([{"role":"user","content":[{"type":"input_image"}]}])"), "input[0].content[0]",
        "image");
  named(with("", R"([{"type":"file_search_call","id":"x"}])"), "input[0]", "file_search_call");
  named(with("", R"([{"type":"item_reference","id":"x"}])"), "input[0].id", "x");
  named(with("", R"([{"type":"function_call_output","output":"x"}])"), "input[0].call_id",
        "missing");
  named(with(R"("background":true)"), "background", "not supported");
  named(with(R"("conversation":"c")"), "conversation", "not supported");
  named(with(R"("truncation":"auto")"), "truncation", "auto");
  named(with(R"("tools":[{"type":"web_search"}])"), "tools[0]", "web_search");
  named(with(R"("tool_choice":{"type":"file_search"})"), "tool_choice.type", "file_search");
  named(with(R"("tool_choice":{"type":"allowed_tools","tools":[]})"), "tool_choice.mode", "auto");
  named(with(R"("tool_choice":{"type":"allowed_tools","mode":"none","tools":[]})"),
        "tool_choice.mode", "none");
  named(with(R"("tool_choice":{"type":"allowed_tools","mode":"auto"})"), "tool_choice.tools",
        "missing");
  named(with(R"("tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp"}]})"),
        "tool_choice.tools[0].type", "mcp");
  named(with(R"("text":{"format":{"type":"xml"}})"), "text.format.type", "xml");
  named(with(R"("text":{"format":{"type":"json_schema"}})"), "text.format.schema", "missing");
  named(with(R"("max_output_tokens":0)"), "max_output_tokens", "0");
  named(with(R"("include":["file_search_call.results"])"), "include[0]", "file_search");
  named(with(R"("image":{"context_compression":"auto"})"), "image", "not supported");
  named(with(R"("background_options":{"completion_window":"2h"})"), "background_options", "not");
  named(with(R"("access_programs":{"cyber":"standard"})"), "access_programs", "not supported");
  named(with(R"("stream_options":{"include_obfuscation":true})"),
        "stream_options.include_obfuscation", "not supported");
  named(with(R"("reasoning":{"mode":"pro"})"), "reasoning.mode", "pro");
  named(with(R"("reasoning":{"context":"all_turns"})"), "reasoning.context", "all_turns");
  named(with(R"("reasoning":{"summary":"long"})"), "reasoning.summary", "long");
  named(with(R"("tools":[{"type":"function","name":"f","async":true}])"), "tools[0].async", "not");
  named(with(R"("tools":[{"type":"function","name":"f","defer_loading":true}])"),
        "tools[0].defer_loading", "not");
  named(with(R"("tools":[{"type":"function","name":"f","output_schema":{"type":"string"}}])"),
        "tools[0].output_schema", "not");
  named(with(R"("tools":[{"type":"function","name":"f","allowed_callers":["programmatic"]}])"),
        "tools[0].allowed_callers", "programmatic");
  named(with("", R"([{"type":"function_call","call_id":"1","name":"w","arguments":"{}",)"
                 R"("caller":{"type":"program","caller_id":"x"}}])"),
        "input[0].caller.type", "program");
  named(with("", R"([{"type":"function_call_output","call_id":"1","output":"","namespace":"n"}])"),
        "input[0].namespace", "not supported");
  EXPECT_TRUE(parse_responses_request(
      with(R"("background":false,"conversation":null,"max_output_tokens":null)")));
}

TEST(ResponsesRequest, ErrorsOfTheChatRequestNameWhatWasSent) {
  const auto request = parse_responses_request(with(""));
  ASSERT_TRUE(request);
  const auto told = [&](const std::string& param) {
    const std::string body = request->answer->error(
        {.code = Code::InvalidArgument, .message = param + " is wrong", .param = param});
    return json::to_text(parse(body).at("error").at("param")) +
           json::to_text(parse(body).at("error").at("message"));
  };
  EXPECT_EQ(told("tools[1].function.parameters.x"),
            R"("tools[1].parameters.x""tools[1].parameters.x is wrong")");
  EXPECT_EQ(told("response_format.json_schema.schema"),
            R"("text.format.schema""text.format.schema is wrong")");
  EXPECT_EQ(told("tool_choice.allowed_tools.tools[0]"),
            R"("tool_choice.tools[0]""tool_choice.tools[0] is wrong")");
  EXPECT_EQ(told("messages"), R"("input""input is wrong")");
}

// --- The answer ---

std::string chunk(const std::string& delta, const std::string& rest = R"("finish_reason":null)") {
  return R"({"id":"chatcmpl-r1","created":5,"model":"m","choices":[{"index":0,"delta":)" + delta +
         "," + rest + "}]}";
}

struct Events {
  std::vector<std::pair<std::string, json::Object>> all;

  void add(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find("\n\n");
      const std::string_view block = text.substr(0, end);
      const auto line = block.find('\n');
      ASSERT_TRUE(block.starts_with("event: "));
      all.emplace_back(block.substr(7, line - 7), parse(block.substr(line + 7)));
      EXPECT_EQ(all.back().second.at("type").as_string(), all.back().first);
      EXPECT_EQ(all.back().second.at("sequence_number"), all.size() - 1);
      text.remove_prefix(end + 2);
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, event] : all) out.push_back(name);
    return out;
  }
};

TEST(ResponsesAnswer, StreamsNumberedEvents) {
  auto request = parse_responses_request(with(R"("stream":true)"));
  ASSERT_TRUE(request);
  EXPECT_EQ(parse(request->chat).at("stream_options").at("include_usage"), true);
  AnswerForm& answer = *request->answer;
  Events events;
  events.add(answer.event(chunk(R"({"role":"assistant","content":""})")));
  events.add(answer.event(chunk(R"({"reasoning_content":"hm"})")));
  events.add(answer.event(chunk(R"({"content":"a"})")));
  events.add(answer.event(chunk(R"({"content":"b"})")));
  events.add(answer.event(
      chunk(R"({"tool_calls":[{"index":0,"id":"c1","function":{"name":"w","arguments":"{}"}}]})")));
  events.add(answer.event(chunk("{}", R"("finish_reason":"tool_calls")")));
  EXPECT_FALSE(answer.take_kept());
  events.add(answer.event(
      R"({"id":"chatcmpl-r1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,)"
      R"("prompt_tokens_details":{"cached_tokens":3}}})"));
  events.add(answer.event("[DONE]"));
  EXPECT_EQ(events.names(), (std::vector<std::string>{"response.created",
                                                      "response.in_progress",
                                                      "response.output_item.added",
                                                      "response.content_part.added",
                                                      "response.reasoning_text.delta",
                                                      "response.reasoning_text.done",
                                                      "response.content_part.done",
                                                      "response.output_item.done",
                                                      "response.output_item.added",
                                                      "response.content_part.added",
                                                      "response.output_text.delta",
                                                      "response.output_text.delta",
                                                      "response.output_text.done",
                                                      "response.content_part.done",
                                                      "response.output_item.done",
                                                      "response.output_item.added",
                                                      "response.function_call_arguments.delta",
                                                      "response.function_call_arguments.done",
                                                      "response.output_item.done",
                                                      "response.completed"}));
  EXPECT_EQ(events.all[0].second.at("response").at("id"), "resp_r1");
  EXPECT_EQ(events.all[12].second.at("text"), "ab");
  EXPECT_EQ(events.all[11].second.at("item_id"), events.all[8].second.at("item").at("id"));
  EXPECT_EQ(events.all[17].second.at("arguments"), "{}");
  const auto& response = events.all.back().second.at("response");
  EXPECT_EQ(response.at("status"), "completed");
  EXPECT_EQ(response.at("output").as_array().size(), 3U);
  EXPECT_EQ(response.at("output").at(2).at("call_id"), "c1");
  EXPECT_EQ(response.at("usage").at("input_tokens"), 10);
  EXPECT_EQ(response.at("usage").at("input_tokens_details").at("cached_tokens"), 3);
  EXPECT_EQ(response.at("usage").at("total_tokens"), 14);

  const auto kept = answer.take_kept();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->id, "resp_r1");
  EXPECT_EQ(kept->body, json::to_text(response));
  EXPECT_EQ(kept->messages,
            R"({"role":"user","content":"hi"},{"role":"assistant","content":"ab",)"
            R"("reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":)"
            R"({"name":"w","arguments":"{}"}}]},)");
  EXPECT_FALSE(answer.take_kept());
}

TEST(ResponsesAnswer, WhatTheLimitCutIsIncomplete) {
  auto request = parse_responses_request(with(R"("store":false,"instructions":"x")"));
  ASSERT_TRUE(request);
  const json::Object response = parse(request->answer->answer(
      R"({"id":"chatcmpl-r1","created":5,"model":"m","choices":[{"index":0,"message":{"role":)"
      R"("assistant","content":"hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":10,)"
      R"("completion_tokens":4},"x_flotilla":{"node":"n"}})"));
  EXPECT_EQ(response.at("object"), "response");
  EXPECT_EQ(response.at("status"), "incomplete");
  EXPECT_EQ(response.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(response.at("output").at(0).at("content").at(0).at("text"), "hi");
  EXPECT_EQ(response.at("output").at(0).at("status"), "incomplete");
  EXPECT_EQ(response.at("instructions"), "x");
  EXPECT_EQ(response.at("store"), false);
  EXPECT_EQ(response.at("x_flotilla").at("node"), "n");
  EXPECT_FALSE(request->answer->take_kept());
}

TEST(ResponsesAnswer, ALaterRequestGoesOnFromAnEarlierOne) {
  auto first = parse_responses_request(with(R"("instructions":"not carried over")"));
  first->answer->answer(
      R"({"id":"chatcmpl-r1","created":5,"model":"m","choices":[{"index":0,"message":{"role":)"
      R"("assistant","content":"hello"},"finish_reason":"stop"}]})");
  const auto kept = first->answer->take_kept();
  ASSERT_TRUE(kept);
  auto second = parse_responses_request(
      with(R"("previous_response_id":"resp_r1","instructions":"new")", R"("more")"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->previous, "resp_r1");
  second->chat.insert(second->earlier_at, kept->messages);
  second->answer->follow(*kept);
  EXPECT_EQ(json::to_text(parse(second->chat).at("messages")),
            R"([{"role":"system","content":"new"},{"role":"user","content":"hi"},)"
            R"({"role":"assistant","content":"hello"},{"role":"user","content":"more"}])");
  second->answer->answer(
      R"({"id":"chatcmpl-r2","created":5,"model":"m","choices":[{"index":0,"message":{"role":)"
      R"("assistant","content":"bye"},"finish_reason":"stop"}]})");
  EXPECT_EQ(second->answer->take_kept()->messages,
            R"({"role":"user","content":"hi"},{"role":"assistant","content":"hello"},)"
            R"({"role":"user","content":"more"},{"role":"assistant","content":"bye"},)");
  EXPECT_EQ(parse(*input_items_json(*kept, {})).at("data").at(0).at("content").at(0).at("text"),
            "hi");
}

TEST(ResponsesAnswer, AnErrorInTheStreamFailsTheResponse) {
  auto request = parse_responses_request(with(R"("stream":true)"));
  Events events;
  events.add(request->answer->event(chunk(R"({"role":"assistant","content":"a"})")));
  events.add(request->answer->event(R"({"error":{"message":"gone","type":"server_error"}})"));
  EXPECT_EQ(events.all[events.all.size() - 2].first, "error");
  EXPECT_EQ(events.all.back().first, "response.failed");
  EXPECT_EQ(events.all.back().second.at("response").at("error").at("message"), "gone");
  EXPECT_EQ(events.all.back().second.at("response").at("status"), "failed");
  EXPECT_FALSE(request->answer->take_kept());
}

}  // namespace
}  // namespace flotilla::api
