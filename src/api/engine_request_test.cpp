#include "api/engine_request.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

ForeignEngine engine(std::string model) {
  ForeignEngine out;
  out.name = "mlx";
  out.model = std::move(model);
  return out;
}

const EngineModels kAll{.names = {}, .all_but = true};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// `members`: beside the model and the messages.
EngineRequest asked(const std::string& members) {
  const auto read = read_served_chat(
      R"({"model":"p","messages":[{"role":"user","content":"hi"}])" + members + "}", kAll);
  EXPECT_TRUE(read) << read.error().message;
  return read && read->for_engines ? *read->for_engines : EngineRequest{};
}

std::string body_of(const std::string& members) {
  return engine_body(asked(members), engine("m"), "");
}

TEST(EngineRequest, is_made_with_the_chat_request_that_the_body_means) {
  const auto read = read_served_chat(
      R"({"model":"p","messages":[{"role":"user","content":"hi"}],"n":2,"stream":true})",
      {.names = {"o", "p"}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->chat.n, 2);
  EXPECT_TRUE(read->chat.stream);
  ASSERT_TRUE(read->for_engines);
  EXPECT_EQ(read->for_engines->asks, std::vector<std::string_view>{"n"});
  const auto wrong = read_served_chat(R"({"model":"p","messages":[]})", kAll);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().param, "messages");
}

TEST(EngineRequest, is_made_for_models_alone_that_engines_may_serve) {
  const char* body = R"({"model":"p","messages":[{"role":"user","content":"hi"}]})";
  EXPECT_FALSE(read_served_chat(body, {})->for_engines);
  EXPECT_FALSE(read_served_chat(body, {.names = {"o"}})->for_engines);
  EXPECT_FALSE(read_served_chat(body, {.names = {"p"}, .all_but = true})->for_engines);
  EXPECT_TRUE(read_served_chat(body, {.names = {"o"}, .all_but = true})->for_engines);
  EXPECT_FALSE(read_served_vectors(R"({"model":"p","input":"x"})", {})->for_engines);
}

TEST(EngineRequest, becomes_the_engines_own_and_keeps_what_the_client_said) {
  const std::string body =
      engine_body(asked(R"(,"temperature":0.5,"session_id":"s","timeout_s":3,"stream":false)"),
                  engine("up/stream"), "");
  EXPECT_EQ(body, R"({"messages":[{"role":"user","content":"hi"}],"temperature":5E-1,)"
                  R"("model":"up/stream","stream":true,"stream_options":{"include_usage":true}})");
}

TEST(EngineRequest, what_no_client_should_say_to_an_engine_stays_here) {
  const std::string body = body_of(
      R"(,"id_slot":3,"cache_salt":"x","kv_transfer_params":{"remote_host":"h"},"top_p":1)");
  EXPECT_EQ(body,
            R"({"messages":[{"role":"user","content":"hi"}],"top_p":1,"model":"m","stream":true,)"
            R"("stream_options":{"include_usage":true}})");
}

TEST(EngineRequest, what_says_nothing_to_us_is_not_said_to_an_engine) {
  EXPECT_EQ(
      body_of(R"(,"temperature":null,"top_p":null,"max_tokens":null,"stop":null,"seed":null,)"
              R"("logprobs":false,"top_logprobs":0,"tools":[],"tool_choice":"auto",)"
              R"("parallel_tool_calls":true,"chat_template_kwargs":null)"),
      R"({"messages":[{"role":"user","content":"hi"}],"logprobs":false,"model":"m","stream":true,)"
      R"("stream_options":{"include_usage":true}})");
  const std::string body = body_of(
      R"(,"top_k":-1,"max_tokens":4.0,"temperature":1.0,"top_p":0.5,"seed":3.0,"logprobs":true,)"
      R"("top_logprobs":2,"tool_choice":"auto",)"
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{}}}])");
  for (const char* part :
       {R"("top_k":0,)", R"("max_tokens":4,)", R"("temperature":1,)", R"("top_p":5E-1,)",
        R"("seed":3})", R"("top_logprobs":2,)", R"("tool_choice":"auto",)", R"("tools":[)"}) {
    EXPECT_TRUE(has(body, part)) << part << " in " << body;
  }
  EXPECT_TRUE(check_engine_can(asked(R"(,"top_k":-1)"), {"top_k"}, "ollama"));
}

TEST(EngineRequest, of_allowed_tools_an_engine_gets_those_alone_and_their_mode) {
  const auto choice = [](const std::string& mode) {
    return R"(,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function",)"
           R"("function":{"name":"g"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":)"
           R"({"mode":")" +
           mode + R"(","tools":[{"type":"function","function":{"name":"g"}}]}})";
  };
  const std::string body = body_of(choice("required"));
  EXPECT_TRUE(has(body, R"("tools":[{"type":"function","function":{"name":"g"}}],)")) << body;
  EXPECT_TRUE(has(body, R"("tool_choice":"required",)")) << body;
  EXPECT_FALSE(check_engine_can(asked(choice("required")), {"tool_choice"}, "mlx"));
  EXPECT_TRUE(check_engine_can(asked(choice("auto")), {"tool_choice"}, "mlx"));
}

TEST(EngineRequest, the_most_tokens_have_the_name_that_every_engine_knows) {
  for (const char* most : {R"(,"max_tokens":7)", R"(,"max_completion_tokens":7)",
                           R"(,"max_completion_tokens":null,"max_tokens":7)",
                           R"(,"max_tokens":9,"max_completion_tokens":7)",
                           R"(,"max_completion_tokens":7,"max_tokens":9)"}) {
    const std::string body = body_of(most);
    EXPECT_TRUE(has(body, R"(,"max_tokens":7,"model")")) << body;
    EXPECT_FALSE(has(body, "max_completion_tokens")) << body;
  }
}

TEST(EngineRequest, a_text_completion_is_not_sent_as_a_chat_without_messages) {
  const auto read = read_served_chat(R"({"model":"p","raw":{"prompts":["x"]}})", kAll);
  ASSERT_TRUE(read) << read.error().message;
  const auto can = check_engine_can(*read->for_engines, {}, "");
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().code, Code::InvalidArgument);
  EXPECT_EQ(can.error().reason, "not_supported_by_engine");
  EXPECT_TRUE(has(can.error().message, "another engine"));
}

TEST(EngineRequest, of_vectors_all_goes_on_but_the_models_name) {
  const auto read =
      read_served_vectors(R"({"model":"p","input":["a",[1,2]],"dimensions":8,"user":"u"})", kAll);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->chat.n, 2);
  EXPECT_EQ(read->chat.user, "u");
  EXPECT_TRUE(check_engine_can(*read->for_engines, {"n", "logprobs"}, "mlx"));
  EXPECT_EQ(engine_body(*read->for_engines, engine("m\""), ""),
            R"({"input":["a",[1,2]],"dimensions":8,"user":"u","model":"m\""})");
}

TEST(EngineRequest, a_seed_is_sent_only_if_the_client_sent_one) {
  EXPECT_FALSE(has(body_of(""), "seed"));
  EXPECT_FALSE(has(body_of(R"(,"seed":null)"), "seed"));
  EXPECT_TRUE(has(body_of(R"(,"seed":-7)"), R"("seed":-7)"));
  ForeignEngine drops = engine("m");
  drops.drops_seed = true;
  EXPECT_FALSE(has(engine_body(asked(R"(,"seed":7)"), drops, ""), "seed"));
}

TEST(EngineRequest, prefixes_are_salted_for_engines_that_know_it) {
  EXPECT_FALSE(has(engine_body(asked(""), engine("m"), "s"), "cache_salt"));
  ForeignEngine salts = engine("m");
  salts.salts_cache = true;
  EXPECT_TRUE(has(engine_body(asked(R"(,"cache_salt":"theirs")"), salts, "ours"),
                  R"(,"cache_salt":"ours"})"));
  EXPECT_FALSE(has(engine_body(asked(""), salts, ""), "cache_salt"));
}

TEST(EngineRequest, what_the_engine_lacks_is_refused_by_name_where_it_is_asked_for) {
  const std::vector<std::string> lacks = {
      "n",     "logprobs",           "response_format", "tool_choice", "parallel_tool_calls",
      "top_k", "repetition_penalty", "tools",           "seed"};
  for (const char* harmless :
       {R"("n":1)", R"("n":null)", R"("logprobs":false)", R"("response_format":{"type":"text"})",
        R"("tool_choice":"auto")", R"("parallel_tool_calls":true)", R"("top_k":0)",
        R"("repetition_penalty":1.0)", R"("tools":[])", R"("stop":"x")"}) {
    EXPECT_TRUE(check_engine_can(asked(std::string(",") + harmless), lacks, "mlx")) << harmless;
  }
  constexpr const char* kTools =
      R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}])";
  const std::pair<const char*, std::string> asking[] = {
      {"n", R"(,"n":2)"},
      {"logprobs", R"(,"logprobs":true)"},
      {"response_format", R"(,"response_format":{"type":"json_object"})"},
      {"tool_choice",
       std::string(R"(,"tool_choice":{"type":"function","function":{"name":"f"}})") + kTools},
      {"parallel_tool_calls", std::string(R"(,"parallel_tool_calls":false)") + kTools},
      {"top_k", R"(,"top_k":5)"},
      {"repetition_penalty", R"(,"repetition_penalty":1.1)"},
      {"tools", kTools},
      {"seed", R"(,"seed":0)"}};
  for (const auto& [field, text] : asking) {
    const EngineRequest request = asked(text);
    EXPECT_TRUE(check_engine_can(request, {"grammar", "stop"}, "mlx")) << text;
    const auto can = check_engine_can(request, lacks, "mlx");
    ASSERT_FALSE(can) << text;
    EXPECT_EQ(can.error().param, field);
    EXPECT_EQ(can.error().reason, "not_supported_by_engine");
    EXPECT_TRUE(has(can.error().message, "mlx"));
  }
}

TEST(EngineRequest, thinking_goes_where_other_engines_look_for_it) {
  EXPECT_TRUE(has(body_of(R"(,"enable_thinking":false,"chat_template_kwargs":{"a":1})"),
                  R"("chat_template_kwargs":{"a":1,"enable_thinking":false})"));
  EXPECT_TRUE(has(body_of(R"(,"enable_thinking":true)"),
                  R"("chat_template_kwargs":{"enable_thinking":true})"));
  EXPECT_TRUE(
      has(body_of(R"(,"chat_template_kwargs":{"a":[]})"), R"("chat_template_kwargs":{"a":[]})"));
  EXPECT_FALSE(has(body_of(R"(,"enable_thinking":true)"), R"(,"enable_thinking")"));
  EXPECT_TRUE(
      has(body_of(R"(,"continue_final_message":true)"), R"("add_generation_prompt":false)"));
}

}  // namespace
}  // namespace flotilla::api
