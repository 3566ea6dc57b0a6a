#include "runner/test_service.h"

// The runner's other forms, over its own routes.
namespace flotilla::runner {
namespace {

class FormsTest : public ServiceTest {
 protected:
  http::Response post(const std::string& path, const std::string& body) {
    http::Request asked = request(body);
    asked.target = path;
    return fetch(std::move(asked));
  }
  api::json::Object ok(const std::string& path, const std::string& body) {
    const http::Response response = post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    auto object = api::json::parse_object(response.body);
    return object ? std::move(*object) : api::json::Object{};
  }
  // The text of a chat answer to the same messages, drawn alike.
  std::string chat_text(const std::string& fields) {
    return std::string(
        answer(body(fields)).at("choices").at(0).at("message").at("content").as_string());
  }
};

TEST_F(FormsTest, MessagesSayWhatChatSays) {
  begin();
  const std::string fields = R"("seed":7,"max_tokens":20)";
  const auto message = ok("/v1/messages", body(fields));
  EXPECT_EQ(message.at("type"), "message");
  EXPECT_EQ(std::string(message.at("content").at(0).at("text").as_string()), chat_text(fields));
  EXPECT_GT(message.at("usage").at("input_tokens").as_int64(), 10);

  const http::Response streamed = post("/v1/messages", body(fields + R"(,"stream":true)"));
  std::string text;
  std::vector<std::string> names;
  http::SseSplitter splitter;
  EXPECT_TRUE(splitter.feed(streamed.body, [&](std::string_view block) {
    const auto event = api::json::parse_object(http::sse_data(block));
    ASSERT_TRUE(event) << block;
    names.emplace_back(event->at("type").as_string());
    if (names.back() == "content_block_delta") text += event->at("delta").at("text").as_string();
  }));
  EXPECT_EQ(text, chat_text(fields));
  ASSERT_GT(names.size(), 5U);
  EXPECT_EQ(names.front(), "message_start");
  EXPECT_EQ(names.back(), "message_stop");
}

TEST_F(FormsTest, ErrorsHaveTheFormOfTheirRoute) {
  begin();
  const auto unknown = post(
      "/v1/messages", R"({"model":"x","max_tokens":1,"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find(R"({"type":"error","error":{"type":"not_found_error")"),
            std::string::npos);
  const auto malformed = post("/v1/messages", "{");
  EXPECT_EQ(malformed.status, 400);
  EXPECT_TRUE(
      malformed.body.starts_with(R"({"type":"error","error":{"type":"invalid_request_error")"))
      << malformed.body;
  EXPECT_TRUE(post("/v1/responses", "{").body.starts_with(R"({"error":{"message")"));
  http::Request deleted = request("");
  deleted.method = "DELETE";
  deleted.target = "/v1/messages";
  const auto refused = fetch(std::move(deleted));
  EXPECT_EQ(refused.status, 405);
  EXPECT_TRUE(refused.body.starts_with(R"({"type":"error")"));
}

TEST_F(FormsTest, ACountIsThePromptsLength) {
  begin();
  const auto chat = answer(body(R"("max_tokens":1)"));
  EXPECT_EQ(ok("/v1/messages/count_tokens", body("")).at("input_tokens"),
            chat.at("usage").at("prompt_tokens"));
  EXPECT_EQ(ok("/tokenize", body("")).at("count"), chat.at("usage").at("prompt_tokens"));
}

TEST_F(FormsTest, TokensAndTextAreEachOthers) {
  begin();
  const auto tokens = ok("/tokenize", R"({"content":"a<|im_end|>","with_pieces":true})");
  EXPECT_EQ(tokens.at("count"), 11) << "what looks like a control token is text";
  EXPECT_EQ(tokens.at("token_strs").at(0), "a");
  EXPECT_EQ(ok("/tokenize", R"({"content":"a<|im_end|>","parse_special":true})").at("count"), 2);
  EXPECT_EQ(ok("/detokenize", R"({"model":"m","tokens":[104,105]})").at("content"), "hi");
  for (const char* outside : {"-1", "258", "2147483647"}) {
    const auto refused = post("/detokenize", std::string(R"({"tokens":[1,)") + outside + "]}");
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("tokens[1] is " + std::string(outside)), std::string::npos)
        << refused.body;
  }
  EXPECT_EQ(post("/tokenize", R"({"model":"x","content":"a"})").status, 404);
  // Several contexts' worth is taken at once, and no more.
  const auto text = [](std::size_t size) {
    return R"({"content":")" + std::string(size, 'a') + "\"}";
  };
  EXPECT_EQ(ok("/tokenize", text(60'000)).at("count"), 60'000);
  const auto refused = post("/tokenize", text(1'000'000));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("send it in parts"), std::string::npos) << refused.body;
}

TEST_F(FormsTest, CompletionsOfSeveralPromptsAreThoseOfEach) {
  begin();
  const std::string fields = R"("model":"m","seed":7,"max_tokens":20,"n":2)";
  const auto both = ok("/v1/completions", "{" + fields + R"(,"prompt":["ab",[120,121,122]]})");
  const auto first = ok("/v1/completions", "{" + fields + R"(,"prompt":"ab"})");
  const auto second = ok("/v1/completions", "{" + fields + R"(,"prompt":"xyz"})");
  EXPECT_EQ(both.at("object"), "text_completion");
  ASSERT_EQ(both.at("choices").as_array().size(), 4U);
  for (int i = 0; i < 4; ++i) {
    const auto& alone = (i < 2 ? first : second).at("choices").at(i % 2);
    EXPECT_EQ(both.at("choices").at(i).at("text"), alone.at("text")) << i;
    EXPECT_EQ(both.at("choices").at(i).at("index"), i);
  }
  EXPECT_NE(first.at("choices").at(0).at("text"), first.at("choices").at(1).at("text"));
  EXPECT_EQ(both.at("usage").at("prompt_tokens"), 5);
}

TEST_F(FormsTest, AnEchoComesFirstAndOnce) {
  begin();
  const std::string fields = R"("model":"m","seed":7,"max_tokens":5,"prompt":[104,105])";
  const std::string plain(
      ok("/v1/completions", "{" + fields + "}").at("choices").at(0).at("text").as_string());
  const auto whole = ok("/v1/completions", "{" + fields + R"(,"echo":true})");
  EXPECT_EQ(std::string(whole.at("choices").at(0).at("text").as_string()), "hi" + plain);
  const auto streamed = post("/v1/completions", "{" + fields + R"(,"echo":true,"stream":true})");
  std::string text;
  http::SseSplitter splitter;
  bool done = false;
  splitter.feed(streamed.body, [&](std::string_view block) {
    const std::string data = http::sse_data(block);
    if (data == "[DONE]") {
      done = true;
      return;
    }
    const auto chunk = api::json::parse_object(data);
    for (const auto& choice : chunk->at("choices").as_array())
      text += choice.at("text").as_string();
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(text, "hi" + plain);
}

TEST_F(FormsTest, PromptsAreRefusedAsThePromptThatTheyAre) {
  begin();
  const auto outside = post("/v1/completions", R"({"model":"m","prompt":[1,258]})");
  EXPECT_EQ(outside.status, 400);
  EXPECT_NE(outside.body.find("token 258"), std::string::npos) << outside.body;
  const auto large =
      post("/v1/completions", R"({"model":"m","prompt":")" + std::string(3000, 'x') + R"("})");
  EXPECT_EQ(large.status, 400);
  EXPECT_NE(large.body.find("context_length_exceeded"), std::string::npos);
  EXPECT_NE(large.body.find(R"("param":"prompt")"), std::string::npos) << large.body;
}

TEST_F(FormsTest, AResponseIsKeptAndGoneOnFrom) {
  begin();
  const std::string fields = R"("model":"m","seed":7,"max_output_tokens":8)";
  const auto first = ok("/v1/responses", "{" + fields + R"(,"input":"hello"})");
  const std::string id(first.at("id").as_string());
  const std::string said(first.at("output").at(0).at("content").at(0).at("text").as_string());
  const auto second = ok("/v1/responses",
                         "{" + fields + R"(,"input":"more","previous_response_id":")" + id + "\"}");
  const auto chat = answer(
      R"({"model":"m","seed":7,"max_tokens":8,"messages":[{"role":"user","content":"hello"},)"
      R"({"role":"assistant","content":)" +
      api::json::to_text(api::json::Value(said)) + R"(},{"role":"user","content":"more"}]})");
  EXPECT_EQ(second.at("output").at(0).at("content").at(0).at("text"),
            chat.at("choices").at(0).at("message").at("content"));
  EXPECT_EQ(second.at("usage").at("input_tokens"), chat.at("usage").at("prompt_tokens"));

  const auto get = [&](const std::string& method, const std::string& target) {
    http::Request asked;
    asked.method = method;
    asked.target = target;
    return fetch(std::move(asked));
  };
  EXPECT_EQ(get("GET", "/v1/responses/" + id).body, api::json::to_text(first));
  EXPECT_EQ(get("GET", "/v1/responses/" + id + "/input_items").status, 200);
  EXPECT_EQ(get("DELETE", "/v1/responses/" + id).status, 200);
  EXPECT_EQ(get("GET", "/v1/responses/" + id).status, 404);
  const auto gone =
      post("/v1/responses", "{" + fields + R"(,"input":"x","previous_response_id":")" + id + "\"}");
  EXPECT_EQ(gone.status, 400);
  EXPECT_NE(gone.body.find("previous_response_not_found"), std::string::npos);
  const auto unkept = ok("/v1/responses", "{" + fields + R"(,"input":"x","store":false})");
  EXPECT_EQ(get("GET", "/v1/responses/" + std::string(unkept.at("id").as_string())).status, 404);
}

TEST_F(FormsTest, ARawRequestIsResumedWithoutASecondEcho) {
  begin();
  const std::string fields =
      R"({"model":"m","max_tokens":20,"ignore_eos":true,"raw":{"prompts":["ab","cd"],"echo":true}})";
  const Streamed whole = stream(request(fields, protocol()));
  ASSERT_TRUE(whole.done);
  EXPECT_TRUE(whole.text.at(0).starts_with("ab") && whole.text.at(1).starts_with("cd"));
  api::Resume resume;
  for (const int choice : {0, 1}) {
    const auto& ids = whole.tokens.at(choice);
    resume.tokens[choice] = api::TokenIds(ids.begin(), ids.begin() + 10);
  }
  http::Headers headers = protocol();
  const std::string before = api::resume_json(resume);
  headers.set("Flotilla-Resume-Bytes", std::to_string(before.size()));
  const http::Response rest = fetch(request(before + fields, headers));
  ASSERT_EQ(rest.status, 200) << rest.body;
  for (const int choice : {0, 1}) {
    std::string text;
    http::SseSplitter splitter;
    splitter.feed(rest.body, [&](std::string_view block) {
      const auto chunk = api::json::parse_object(http::sse_data(block));
      if (!chunk || !chunk->contains("choices")) return;
      for (const auto& of : chunk->at("choices").as_array()) {
        if (of.at("index") != choice) continue;
        if (const auto* content = of.at("delta").as_object().if_contains("content"))
          text += content->as_string();
      }
    });
    EXPECT_TRUE(whole.text.at(choice).ends_with(text)) << text;
    EXPECT_FALSE(text.starts_with("ab") || text.starts_with("cd")) << text;
    EXPECT_LT(text.size(), whole.text.at(choice).size());
    EXPECT_FALSE(text.empty());
  }
}

}  // namespace
}  // namespace flotilla::runner
