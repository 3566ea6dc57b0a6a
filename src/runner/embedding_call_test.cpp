#include <cmath>

#include "runner/test_service.h"

// Requests for vectors, over the runner's own route.
namespace flotilla::runner {
namespace {

using Vector = std::vector<double>;

class EmbeddingCallTest : public ServiceTest {
 protected:
  http::Response post(const std::string& fields, http::Headers headers = {}) {
    http::Request asked = request(R"({"model":"m",)" + fields + "}", std::move(headers));
    asked.target = "/v1/embeddings";
    return fetch(std::move(asked));
  }
  static std::vector<Vector> vectors_of(const http::Response& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    std::vector<Vector> out;
    const auto object = api::json::parse_object(response.body);
    if (!object) return out;
    for (const auto& item : object->at("data").as_array()) {
      EXPECT_EQ(item.at("index"), out.size());
      out.emplace_back();
      for (const auto& number : item.at("embedding").as_array())
        out.back().push_back(number.to_number<double>());
    }
    return out;
  }
  std::vector<Vector> vectors(const std::string& fields) { return vectors_of(post(fields)); }
  bool idle() { return service_->calls() == 0 && service_->load().running == 0; }
};

TEST_F(EmbeddingCallTest, EachInputGetsTheVectorThatItGetsAlone) {
  fake_.step_tokens_max = 16;  // long inputs take several passes
  begin();
  std::string list;
  std::vector<Vector> alone;
  for (int i = 0; i < 30; ++i) {
    const std::string text = std::string(1 + i * 7 % 50, 'x') + static_cast<char>('a' + i % 26);
    list += (list.empty() ? "\"" : ",\"") + text + '"';
    alone.push_back(vectors(R"("input":")" + text + '"').at(0));
  }
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_EQ(vectors(R"("input":[)" + list + "]"), alone);
  for (const Vector& vector : alone) {
    double squares = 0;
    for (const double number : vector) squares += number * number;
    EXPECT_NEAR(squares, 1, 1e-5);
  }
  EXPECT_EQ(vectors(R"("input":[104,105])"), vectors(R"("input":"hi")"));
  EXPECT_EQ(vectors(R"("input":[[104],[105]])"), vectors(R"("input":["h","i"])"));
}

TEST_F(EmbeddingCallTest, BesideAnswersBothAreWhatTheyAreAlone) {
  begin();
  const Vector alone = vectors(R"("input":"abc")").at(0);
  const std::string fields = R"("seed":5,"max_tokens":40,"ignore_eos":true)";
  const auto text = answer(body(fields)).at("choices").at(0).at("message").at("content");
  std::string list = "\"abc\"";
  for (int i = 0; i < 40; ++i) list += ",\"abc\"";
  http::Request asked = request(R"({"model":"m","input":[)" + list + "]}");
  asked.target = "/v1/embeddings";
  std::optional<http::Response> got;
  boost::asio::co_spawn(io_, client_->fetch(std::move(asked), 20s),
                        [&](std::exception_ptr, Result<http::Response> response) {
                          ASSERT_TRUE(response) << response.error().message;
                          got = std::move(*response);
                        });
  EXPECT_EQ(answer(body(fields)).at("choices").at(0).at("message").at("content"), text);
  run_until([&] { return got.has_value(); });
  EXPECT_EQ(vectors_of(*got), std::vector<Vector>(41, alone));
}

TEST_F(EmbeddingCallTest, WhereAPromptMustBeWholeItIs) {
  fake_.context = 64;
  fake_.step_tokens_max = 100;
  fake_.whole_prompts = true;
  fake_.per_step = 1ms;
  begin();
  std::string list;
  std::vector<Vector> alone;
  for (int i = 0; i < 20; ++i) {
    const std::string text(1 + i * 13 % 60, static_cast<char>('a' + i));
    list += (list.empty() ? "\"" : ",\"") + text + '"';
    alone.push_back(vectors(R"("input":")" + text + '"').at(0));
  }
  EXPECT_EQ(vectors(R"("input":[)" + list + "]"), alone);
  const auto refused = fetch(request(body("")));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("/v1/embeddings"), std::string::npos) << refused.body;
}

TEST_F(EmbeddingCallTest, FewerDimensionsAreTheFirstOnes) {
  begin();
  const Vector whole = vectors(R"("input":"abc")").at(0);
  const Vector part = vectors(R"("input":"abc","dimensions":3)").at(0);
  ASSERT_EQ(part.size(), 3U);
  const double length = std::sqrt(whole[0] * whole[0] + whole[1] * whole[1] + whole[2] * whole[2]);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(part[i], whole[i] / length, 1e-6);
  const auto more = post(R"("input":"abc","dimensions":13)");
  EXPECT_EQ(more.status, 400);
  EXPECT_NE(more.body.find("dimensions is 13, but this model's vectors have 12"), std::string::npos)
      << more.body;
}

TEST_F(EmbeddingCallTest, WhatIsWrongIsThatInputs) {
  fake_.context = 64;
  begin();
  const std::pair<std::string, std::string> cases[] = {
      {R"("input":["a",")" + std::string(64, 'x') + "\"]", R"("param":"input[1]")"},
      {R"("input":[1,258])", "token 258"},
      {R"("input":"")", R"("param":"input")"},
  };
  for (const auto& [fields, words] : cases) {
    const auto refused = post(fields);
    EXPECT_EQ(refused.status, 400) << fields;
    EXPECT_NE(refused.body.find(words), std::string::npos) << refused.body;
  }
  http::Request unknown = request(R"({"model":"x","input":"a"})");
  unknown.target = "/v1/embeddings";
  EXPECT_EQ(fetch(std::move(unknown)).status, 404);
}

TEST_F(EmbeddingCallTest, AGatewayIsToldTheCountAndThatWorkGoesOn) {
  fake_.per_step = 30ms;
  options_.call.keep_alive = 10ms;
  begin();
  const auto response = post(R"("input":"abc")", protocol());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.find("Flotilla-Prompt-Tokens"), "3");
  EXPECT_TRUE(response.body.starts_with(" ")) << response.body.substr(0, 10);
  const auto object = api::json::parse_object(response.body);
  ASSERT_TRUE(object) << response.body;
  EXPECT_EQ(object->at("model"), "asked");
  EXPECT_EQ(object->at("x_flotilla").at("node"), "node-1");
}

// As for chat: the thread is busy to the end, but nobody waits for it.
TEST_F(EmbeddingCallTest, PreparingItHasItsTime) {
  options_.text_max = {.all = 0s, .slow = 0s};
  begin();
  const std::string text(20 << 20, 'x');  // takes a tenth of a second
  const auto vectors = post(R"("input":")" + text + '"');
  const auto chat = fetch(request(body("", text)));
  for (const http::Response& response : {vectors, chat}) {
    EXPECT_EQ(response.status, 400) << response.body;
    EXPECT_NE(response.body.find("took longer than 0 s to prepare"), std::string::npos)
        << response.body;
  }
}

TEST_F(EmbeddingCallTest, TimeAndClientsThatGoAwayEndIt) {
  fake_.per_step = 40ms;
  begin();
  std::string list = "\"a\"";
  for (int i = 0; i < 200; ++i) list += ",\"a\"";
  const auto late = post(R"("timeout_s":0.05,"input":[)" + list + "]");
  EXPECT_EQ(late.status, 504) << late.body;
  http::Headers headers = protocol();
  headers.set("Flotilla-Deadline-Ms", "5");
  EXPECT_EQ(post(R"("input":"abc")", headers).status, 504);
  http::Request asked = request(R"({"model":"m","input":[)" + list + "]}");
  asked.target = "/v1/embeddings";
  http::Cut cut;
  bool ended = false;
  boost::asio::co_spawn(
      io_, client_->open(std::move(asked), 20s, &cut),
      [&](std::exception_ptr, Result<std::unique_ptr<http::ClientStream>>) { ended = true; });
  run_until([&] { return service_->load().running > 0; });
  cut.now();
  run_until([&] { return ended && idle(); });
}

}  // namespace
}  // namespace flotilla::runner
