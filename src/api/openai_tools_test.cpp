#include "api/openai_tools.h"

#include <string>

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

Result<ChatRequest> parse_with(const std::string& fields) {
  return parse_chat_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}],)" +
                            fields + "}");
}

const std::string kTools =
    R"("tools":[{"type":"function","function":{"name":"f","description":"d","parameters":)"
    R"({"type":"object","properties":{"a":{"type":"number","minimum":2}},"required":["a"]}}},)"
    R"({"type":"function","function":{"name":"g"}}])";

TEST(ChatTools, AreReadWithTheirSchemasAndWhatOfThemGuides) {
  const auto request = parse_with(kTools + R"(,"parallel_tool_calls":false)");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->tools.size(), 2U);
  EXPECT_EQ(request->tools[0].name, "f");
  EXPECT_EQ(request->tools[0].description, "d");
  EXPECT_EQ(
      request->tools[0].parameters,
      R"({"type":"object","properties":{"a":{"type":"number","minimum":2}},"required":["a"]})");
  EXPECT_EQ(request->tools[0].guide,
            R"({"type":"object","properties":{"a":{"type":"number"}},"required":["a"]})");
  EXPECT_EQ(request->tools[1].parameters, R"({"type":"object","properties":{}})");
  EXPECT_EQ(request->tool_choice, ToolChoice::Auto);
  EXPECT_EQ(request->parallel_tool_calls, false);
}

TEST(ChatTools, AChoiceByNameLeavesThatOneAndRequiresIt) {
  EXPECT_EQ(parse_with(kTools + R"(,"tool_choice":"required")")->tool_choice, ToolChoice::Required);
  EXPECT_EQ(parse_with(kTools + R"(,"tool_choice":"none")")->tool_choice, ToolChoice::None);
  const auto named =
      parse_with(kTools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->tool_choice, ToolChoice::Required);
  ASSERT_EQ(named->tools.size(), 1U);
  EXPECT_EQ(named->tools[0].name, "g");
}

TEST(ChatTools, TheAllowedOnesAreLeft) {
  const auto allowed = [](const std::string& mode, const std::string& tools) {
    return parse_with(kTools +
                      R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":")" + mode +
                      R"(","tools":[)" + tools + "]}}");
  };
  const std::string g = R"({"type":"function","function":{"name":"g"}})";
  const std::string f = R"({"type":"function","function":{"name":"f"}})";
  const auto one = allowed("required", g);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->tool_choice, ToolChoice::Required);
  ASSERT_EQ(one->tools.size(), 1U);
  EXPECT_EQ(one->tools[0].name, "g");
  EXPECT_EQ(allowed("auto", g)->tool_choice, ToolChoice::Auto);
  EXPECT_EQ(allowed("auto", g)->tools.size(), 1U);
  // In the order of the tools themselves, and each once.
  const auto both = allowed("auto", g + "," + f + "," + g);
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->tools.size(), 2U);
  EXPECT_EQ(both->tools[0].name, "f");
}

TEST(ChatTools, MalformedOnesAreRefusedByName) {
  const std::string allowed = kTools + R"(,"tool_choice":{"type":"allowed_tools")";
  const std::string of = R"(,"allowed_tools":{"mode":"auto","tools":)";
  const std::pair<std::string, std::string> cases[] = {
      {R"("tools":{})", "tools"},
      {R"("tools":[1])", "tools[0]"},
      {R"("tools":[{"function":{"name":"f"}}])", "tools[0].type"},
      {R"("tools":[{"type":"web_search"}])", "tools[0].type"},
      {R"("tools":[{"type":"function"}])", "tools[0].function"},
      {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"<|im_end|>"}}])",
       "tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":3}}])",
       "tools[0].function.parameters"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"string"}}}])",
       "tools[0].function.parameters.type"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
       R"("properties":{"a":{"$ref":"#/x"}}}}}])",
       "tools[0].function.parameters.properties.a.$ref"},
      {R"("tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":)"
       R"({"type":"object","minProperties":1}}}])",
       "tools[0].function.parameters.minProperties"},
      {kTools.substr(0, kTools.size() - 1) + R"(,{"type":"function","function":{"name":"f"}}])",
       "tools[2].function.name"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
      {kTools + R"(,"tool_choice":"sometimes")", "tool_choice"},
      {kTools + R"(,"tool_choice":{"type":"function"})", "tool_choice.function"},
      {kTools + R"(,"tool_choice":{"type":"function","function":{"name":"h"}})",
       "tool_choice.function.name"},
      {kTools + R"(,"tool_choice":{"type":"custom"})", "tool_choice.type"},
      {allowed + "}", "tool_choice.allowed_tools"},
      {allowed + R"(,"allowed_tools":{"tools":[1]}})", "tool_choice.allowed_tools.mode"},
      {allowed + R"(,"allowed_tools":{"mode":"none","tools":[1]}})",
       "tool_choice.allowed_tools.mode"},
      {allowed + R"(,"allowed_tools":{"mode":"auto"}})", "tool_choice.allowed_tools.tools"},
      {allowed + of + "[]}}", "tool_choice.allowed_tools.tools"},
      {allowed + of + "[1]}}", "tool_choice.allowed_tools.tools[0]"},
      {allowed + of + R"([{"type":"mcp"}]}})", "tool_choice.allowed_tools.tools[0].type"},
      {allowed + of + R"([{"type":"function"}]}})", "tool_choice.allowed_tools.tools[0].function"},
      {allowed + of + R"([{"type":"function","function":{"name":"h"}}]}})",
       "tool_choice.allowed_tools.tools[0]"},
      {R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})",
       "tool_choice"},
      {R"("parallel_tool_calls":1)", "parallel_tool_calls"},
  };
  for (const auto& [fields, param] : cases) {
    const auto request = parse_with(fields);
    ASSERT_FALSE(request) << fields;
    EXPECT_EQ(request.error().code, Code::InvalidArgument);
    EXPECT_EQ(request.error().param, param) << fields << ": " << request.error().message;
  }
}

TEST(ChatTools, NamesAreAsLongAsAnthropicsMayBe) {
  const auto named = [](std::size_t length) {
    return parse_with(R"("tools":[{"type":"function","function":{"name":")" +
                      std::string(length, 'n') + R"("}}])");
  };
  EXPECT_TRUE(named(128));
  ASSERT_FALSE(named(129));
  EXPECT_EQ(named(129).error().param, "tools[0].function.name");
}

TEST(ChatAnswerForm, SchemasAndGrammarsAreRead) {
  EXPECT_EQ(parse_with(R"("response_format":{"type":"json_object"})")->answer_schema,
            R"({"type":"object"})");
  const auto schema = parse_with(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,)"
      R"("schema":{"type":"boolean","title":"t"}}})");
  ASSERT_TRUE(schema) << schema.error().message;
  EXPECT_EQ(schema->answer_schema, R"({"type":"boolean"})");
  EXPECT_EQ(parse_with(R"("grammar":"root ::= \"a\"")")->grammar, "root ::= \"a\"");
  EXPECT_TRUE(parse_with(kTools + R"(,"grammar":"root ::= \"a\"","tool_choice":"none")"));
}

TEST(ChatAnswerForm, BrokenOnesAreRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})",
       "response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{"type":"nonsense"}}})",
       "response_format.json_schema.schema.type"},
      {R"("grammar":5)", "grammar"},
      {R"("grammar":")" + std::string(70'000, 'x') + '"', "grammar"},
      {R"("grammar":"root ::= )" + std::string(100, '(') + std::string(100, ')') + '"', "grammar"},
      {R"("grammar":"root ::= \"a\"{5000}")", "grammar"},
      {R"("grammar":"root ::= \"a\"{1,99999999999999}")", "grammar"},
      {R"("grammar":"root ::= \"a\"","response_format":{"type":"json_object"})", "grammar"},
      {kTools + R"(,"grammar":"root ::= \"a\"")", "grammar"},
  };
  for (const auto& [fields, param] : cases) {
    const auto request = parse_with(fields);
    ASSERT_FALSE(request) << fields.substr(0, 200);
    EXPECT_EQ(request.error().param, param) << fields.substr(0, 200) << request.error().message;
  }
  // Signs in literals and classes are no groups.
  EXPECT_TRUE(parse_with(R"("grammar":"root ::= \"((((\" [({\\]]{3,9} # (((")"));
}

TEST(ChatLogprobs, AreAskedForTogether) {
  EXPECT_EQ(parse_with(R"("logprobs":true)")->top_logprobs, 0);
  EXPECT_EQ(parse_with(R"("logprobs":true,"top_logprobs":3)")->top_logprobs, 3);
  EXPECT_EQ(parse_with(R"("logprobs":false)")->top_logprobs, std::nullopt);
}

}  // namespace
}  // namespace flotilla::api
