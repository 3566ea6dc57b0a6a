#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/llama_engine.h"
#include "runner/prepare.h"

// From a request's schema, tools or grammar to what its answer may be, by the real model's tokens.
namespace flotilla::runner {
namespace {

TextTools load_tools(const std::string& chat_template = {}) {
  const char* file = std::getenv("FLOTILLA_SAMPLE_MODEL");
  engine::LoadOptions options;
  options.model = file != nullptr ? file : ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  options.context = 1024;
  options.chat_template = chat_template;
  auto loaded = engine::load_llama(options, {});
  if (!loaded) {
    ADD_FAILURE() << loaded.error().message << " (fetch it: tools/fetch.py)";
    std::abort();
  }
  return make_text_tools(*loaded, "m");
}

const TextTools& sample_tools() {
  static const TextTools tools = load_tools();
  return tools;
}

// With the template of a family that thinks before it answers.
const TextTools& thinking_tools() {
  static const TextTools tools = [] {
    const char* given = std::getenv("FLOTILLA_TEMPLATES");
    const std::string folder =
        given != nullptr ? given : ".cache/llama.cpp-0c1e570/models/templates";
    std::ifstream file(folder + "/Qwen-Qwen3-0.6B.jinja");
    EXPECT_TRUE(file) << folder;
    std::stringstream text;
    text << file.rdbuf();
    return load_tools(text.str());
  }();
  return tools;
}

Result<PreparedChat> prepare(const std::string& fields, const std::string& resume = {},
                             const TextTools& tools = sample_tools()) {
  CallHeaders headers;
  headers.request_id = "r";
  headers.resume_bytes = resume.size();
  return prepare_chat(
      resume + R"({"model":"m","messages":[{"role":"user","content":"hi"}],)" + fields + "}",
      headers, tools, 1);
}

std::vector<engine::Token> tokens_of(const std::string& text) {
  return sample_tools().tokenizer->tokenize(text, false, false);
}

bool may_end(const engine::Grammar& grammar) { return grammar.allows(2); }  // <|im_end|>

// The grammar allows the whole text, and then the end.
bool allows(engine::Grammar& grammar, const std::string& text) {
  for (const engine::Token token : tokens_of(text)) {
    if (!grammar.allows(token)) return false;
    grammar.accept(token);
  }
  return may_end(grammar);
}

bool schema_allows(const std::string& schema, const std::string& text) {
  const auto chat = prepare(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":)" +
      schema + "}}");
  if (!chat) {
    ADD_FAILURE() << schema << ": " << chat.error().message;
    return false;
  }
  return allows(*chat->grammars.at(0), text);
}

struct SchemaCase {
  std::string schema;
  std::vector<std::string> right;
  std::vector<std::string> wrong;
};

TEST(ShapedAnswers, FollowTheirSchema) {
  const SchemaCase cases[] = {
      {R"({"type":"object","properties":{"p":{"$ref":"#/$defs/p"}},"required":["p"],)"
       R"("additionalProperties":false,"$defs":{"p":{"type":"string","enum":["red","blue"]}}})",
       {R"({"p": "red"})", R"({"p":"blue"})"},
       {R"({})", R"({"p": "green"})", R"({"p": "red", "q": 1})", R"("red")"}},
      {R"({"type":["string","null"],"maxLength":3})",
       {"null", R"("abc")", R"("")"},
       {R"("abcd")", "1"}},
      {R"({"type":"array","items":{"type":"array","items":{"type":"boolean"}},"minItems":1,"maxItems":2})",
       {"[[]]", "[[true, false], [true]]"},
       {"[]", "[true]", "[[],[],[]]"}},
      {R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#"},)"
       R"({"type":"null"}]}},"required":["v","next"],"additionalProperties":false})",
       {R"({"v": 1, "next": null})", R"({"v": 1, "next": {"v": 2, "next": null}})"},
       {R"({"v": 1})", R"({"v": 1, "next": 2})"}},
      {R"({"type":"integer","minimum":-3,"exclusiveMaximum":12})",
       {"-3", "0", "11"},
       {"-4", "12", "1.5"}},
      {R"({"type":"string","pattern":"^[A-Z]{2}-\\d+(?:\\.5)?$"})",
       {R"("AB-1")", R"("XY-123.5")"},
       {R"("ab-1")", R"("AB-")", R"("AB-1.4")"}},
      {R"({"type":"string","pattern":"^.{1,2}[^x]$"})",
       {R"("abc")", R"("日本語")"},
       {R"("abx")", R"("a"b")", R"("a\bc")"}},
      {R"({"type":"string","format":"date"})", {R"("2024-02-29")"}, {R"("2024-13-01")", R"("x")"}},
      {R"({"type":"string","format":"email"})",
       {R"("jane.doe2@mail.example.org")"},
       {R"("jane")", R"("@x.org")"}},
      {R"({"type":"string","format":"ipv4"})",
       {R"("127.0.0.1")"},
       {R"("1.2.3")", R"("256.1.1.1")"}},
      {R"({"type":"string","format":"hostname"})", {R"("a.example.org")"}, {R"("-")", R"("a..b")"}},
      {R"({"type":"array","prefixItems":[{"type":"null"},{"const":{"a":[1]}}],"items":false})",
       {R"([null, {"a":[1]}])"},
       {"[null]", "[]"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]},)"
       R"({"type":"object","properties":{"b":{"type":"null"}},"required":["b"]}]})",
       {R"({"a": null, "b": null})"},
       {R"({"a": null})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":{"type":"integer"}})",
       {R"({})", R"({"a": null, "x": 1})", R"({"other": 3})"},
       {R"({"x": "y"})"}},
      {R"({"type":"number","minimum":0.5,"exclusiveMaximum":10})",
       {"0.5", "0.50", "9.999999", "7", "3.25"},
       {"0.4", "0", "10", "10.0", "-1", "1e1", "00.5"}},
      {R"({"type":"integer","minimum":100})", {"100", "101", "4711"}, {"10", "99", "-100", "0100"}},
      {R"({"type":"integer","maximum":-5})", {"-5", "-12"}, {"-4", "5", "-05"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b"]},"minItems":1})",
       {R"(["a"])", R"(["b","a"])"},
       {"[]", R"(["a","a"])"}},
      {"{}", {"1", R"({"a":[true,null]})", R"("x")"}, {"x", "{"}},
      {R"({"enum":["a\"b\\c\n"]})", {R"("a\"b\\c\n")"}, {R"("a")"}},
  };
  for (const SchemaCase& one : cases) {
    for (const std::string& text : one.right) {
      EXPECT_TRUE(schema_allows(one.schema, text)) << one.schema << " " << text;
    }
    for (const std::string& text : one.wrong) {
      EXPECT_FALSE(schema_allows(one.schema, text)) << one.schema << " " << text;
    }
  }
}

constexpr const char* kTool =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
    R"("properties":{"a":{"enum":["x","y"]},"b":{"type":"number","minimum":1}},)"
    R"("required":["a"],"additionalProperties":false}}}])";

TEST(ShapedAnswers, CallTheirToolWhereTheyMust) {
  const auto chat = prepare(std::string(kTool) + R"(,"tool_choice":"required")");
  ASSERT_TRUE(chat) << chat.error().message;
  const auto right = R"(<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>)";
  EXPECT_TRUE(allows(*chat->grammars.at(0), right));
  for (const char* wrong : {"Hello", R"(<tool_call>{"name": "g")",
                            R"(<tool_call>{"name": "f", "arguments": {"a": "z")"}) {
    const auto again = prepare(std::string(kTool) + R"(,"tool_choice":"required")");
    EXPECT_FALSE(allows(*again->grammars.at(0), wrong)) << wrong;
  }
  const api::ChatDelta delta = chat->deltas.at(0)->take(right, true);
  ASSERT_EQ(delta.tool_calls.size(), 1U);
  EXPECT_EQ(delta.tool_calls[0].name, "f");
  EXPECT_EQ(delta.tool_calls[0].arguments, R"({"a": "x"})");
}

// However much of an answer another replica has shown: the rest is what it would have been.
TEST(ShapedAnswers, AreResumedWhereTheyStood) {
  const std::string text = R"(<tool_call>
{"name": "f", "arguments": {"a": "y"}}
</tool_call>)";
  const auto tokens = tokens_of(text);
  for (std::size_t given = 0; given < tokens.size(); ++given) {
    const std::vector<std::int32_t> ids(tokens.begin(),
                                        tokens.begin() + static_cast<std::ptrdiff_t>(given));
    const std::string resume = api::resume_json({.tokens = {{0, ids}}, .finished = {}});
    const auto chat = prepare(std::string(kTool) + R"(,"tool_choice":"required")", resume);
    ASSERT_TRUE(chat) << chat.error().message;
    engine::Grammar& grammar = *chat->grammars.at(0);
    std::string rest;
    for (std::size_t i = given; i < tokens.size(); ++i) {
      ASSERT_TRUE(grammar.allows(tokens[i])) << given << " " << i;
      grammar.accept(tokens[i]);
      rest += sample_tools().tokenizer->piece(tokens[i]);
    }
    EXPECT_TRUE(may_end(grammar));
    const auto whole = prepare(std::string(kTool) + R"(,"tool_choice":"required")");
    std::string arguments;
    for (const auto& call :
         whole->deltas.at(0)->take(text.substr(0, text.size() - rest.size()), false).tool_calls) {
      arguments += call.arguments;
    }
    for (const auto& call : chat->deltas.at(0)->take(rest, true).tool_calls) {
      arguments += call.arguments;
    }
    EXPECT_EQ(arguments, R"({"a": "y"})") << given;
  }
}

TEST(ShapedAnswers, ThoughtsAreResumedWhereTheyStood) {
  const auto tokens = tokens_of("<think>\nI wonder.\n</think>\n\nYes.");
  const auto read = [&](std::size_t given) {
    const std::vector<std::int32_t> ids(tokens.begin(),
                                        tokens.begin() + static_cast<std::ptrdiff_t>(given));
    const auto before = prepare(R"("max_tokens":50)", "", thinking_tools());
    const auto chat =
        prepare(R"("max_tokens":50)", api::resume_json({.tokens = {{0, ids}}, .finished = {}}),
                thinking_tools());
    std::string text;
    std::string rest;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      (i < given ? text : rest) += thinking_tools().tokenizer->piece(tokens[i]);
    const api::ChatDelta shown = before->deltas.at(0)->take(text, false);
    const api::ChatDelta more = chat->deltas.at(0)->take(rest, true);
    return std::pair(shown.reasoning_content + more.reasoning_content,
                     shown.content + more.content);
  };
  const auto whole = read(0);
  EXPECT_NE(whole.first.find("I wonder."), std::string::npos) << whole.first;
  EXPECT_EQ(whole.second, "Yes.");
  for (std::size_t given = 1; given < tokens.size(); ++given)
    EXPECT_EQ(read(given), whole) << given;
}

// The budget's end is where it would have been, however much another replica had shown.
TEST(ShapedAnswers, AThoughtsBudgetIsResumedToo) {
  const auto spec_of = [](const std::string& resume) {
    auto chat = prepare(R"("thinking_budget":3)", resume, thinking_tools());
    EXPECT_TRUE(chat) << chat.error().message;
    return chat->answers.at(0);
  };
  const TextTools& tools = thinking_tools();
  const auto end = tools.tokenizer->tokenize("</think>", false, true);
  std::vector<engine::Token> said = tokens_of("<think> a b c");
  said.insert(said.end(), end.begin(), end.end());
  int forced = 0;
  for (std::size_t given = 0; given < said.size(); ++given) {
    const std::vector<std::int32_t> ids(said.begin(),
                                        said.begin() + static_cast<std::ptrdiff_t>(given));
    ThoughtLimit limit(spec_of(api::resume_json({.tokens = {{0, ids}}, .finished = {}})).thoughts);
    for (const engine::Token token : ids) limit.add(token, tools.tokenizer->piece(token));
    if (!limit.forced()) continue;
    EXPECT_EQ(*limit.forced(), said[given]) << given;
    ++forced;
  }
  EXPECT_EQ(forced, static_cast<int>(end.size()));
}

TEST(ShapedAnswers, WhatCannotBeCompiledIsTheRequestsFault) {
  for (const char* fields : {R"("grammar":"root ::= (")", R"("grammar":"root ::= root")",
                             R"("grammar":"x")", R"("grammar":"root ::= a\na ::= b\nb ::= a")"}) {
    const auto chat = prepare(fields);
    ASSERT_FALSE(chat) << fields;
    EXPECT_EQ(chat.error().code, Code::InvalidArgument);
  }
  int compiled = 0;
  CallHeaders headers;
  const std::string plain = R"({"model":"m","messages":[{"role":"user","content":"hi"}])";
  (void)prepare_chat(plain + "}", headers, sample_tools(), 1, [&] { ++compiled; });
  EXPECT_EQ(compiled, 0);
  (void)prepare_chat(plain + R"(,"grammar":"root ::= \"a\""})", headers, sample_tools(), 1,
                     [&] { ++compiled; });
  EXPECT_EQ(compiled, 1);
}

}  // namespace
}  // namespace flotilla::runner
