#include "api/embeddings.h"

#include <cmath>

#include <gtest/gtest.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

TEST(EmbeddingsRequest, TakesTextsAndTokensAloneAndInLists) {
  const auto inputs = [](const std::string& input) {
    const auto request = parse_embeddings_request(R"({"model":"m","input":)" + input + "}");
    EXPECT_TRUE(request) << request.error().message;
    return request ? request->inputs : std::vector<RawPrompts::Prompt>{};
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(inputs(R"("a")"), (std::vector<RawPrompts::Prompt>{"a"}));
  EXPECT_EQ(inputs(R"(["a","b"])"), (std::vector<RawPrompts::Prompt>{"a", "b"}));
  EXPECT_EQ(inputs("[1,2]"), (std::vector<RawPrompts::Prompt>{Ids{1, 2}}));
  EXPECT_EQ(inputs("[[1],[2,3]]"), (std::vector<RawPrompts::Prompt>{Ids{1}, Ids{2, 3}}));
  const auto request = parse_embeddings_request(
      R"({"model":"m","input":"a","encoding_format":"base64","dimensions":3,"user":"u",)"
      R"("timeout_s":2,"extra":1})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->base64);
  EXPECT_EQ(request->dimensions, 3);
  EXPECT_EQ(request->user, "u");
  EXPECT_EQ(request->timeout_s, 2);
}

TEST(EmbeddingsRequest, WhatIsWrongIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"input":"a"})", "model"},
      {R"({"model":"m"})", "input"},
      {R"({"model":"m","input":""})", "input"},
      {R"({"model":"m","input":[]})", "input"},
      {R"({"model":"m","input":["a",""]})", "input[1]"},
      {R"({"model":"m","input":[1,-1]})", "input"},
      {R"({"model":"m","input":{"a":1}})", "input"},
      {R"({"model":"m","input":"a","encoding_format":"int8"})", "encoding_format"},
      {R"({"model":"m","input":"a","dimensions":0})", "dimensions"},
  };
  for (const auto& [body, param] : cases) {
    const auto request = parse_embeddings_request(body);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().param, param) << request.error().message;
  }
  std::string many = R"({"model":"m","input":[)";
  for (int i = 0; i < 2048; ++i) many += "\"x\",";
  EXPECT_FALSE(parse_embeddings_request(many + "\"x\"]}"));
  many.pop_back();
  EXPECT_TRUE(parse_embeddings_request(many + "]}"));
}

TEST(EmbeddingsAnswer, VectorsHaveLengthOneAlsoShortened) {
  EXPECT_EQ(unit_vector({3, 4}, 2), (std::vector<float>{0.6F, 0.8F}));
  EXPECT_EQ(unit_vector({3, 4}, 1), (std::vector<float>{1}));
  EXPECT_EQ(unit_vector({0, 0}, 2), (std::vector<float>{0, 0}));
}

TEST(EmbeddingsAnswer, IsJsonAsOpenAiHasIt) {
  EmbeddingsAnswer answer{.model = "m", .vectors = {{0.6F, -0.8F}, {1, 0}}, .prompt_tokens = 7};
  const auto object = json::parse_object(to_json(answer));
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->at("object"), "list");
  EXPECT_EQ(object->at("model"), "m");
  EXPECT_EQ(object->at("usage"), (json::Value{{"prompt_tokens", 7}, {"total_tokens", 7}}));
  const auto& data = object->at("data").as_array();
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[1].at("index"), 1);
  EXPECT_EQ(data[1].at("object"), "embedding");
  EXPECT_EQ(data[0].at("embedding").at(0).to_number<float>(), 0.6F) << "each float as it is";
  answer.base64 = true;
  const auto coded = json::parse_object(to_json(answer));
  EXPECT_EQ(coded->at("data").at(1).at("embedding"), "AACAPwAAAAA=");
}

TEST(ForeignEmbeddings, GetTheAliasAndTellTheirCount) {
  const auto read = read_foreign_embeddings(
      R"({"model":"theirs","data":[],"usage":{"prompt_tokens":5,"total_tokens":5}})", "ours");
  EXPECT_EQ(read.prompt_tokens, 5);
  EXPECT_NE(read.body.find(R"("model":"ours")"), std::string::npos) << read.body;
  EXPECT_EQ(read_foreign_embeddings("no JSON", "x").body, "no JSON");
}

}  // namespace
}  // namespace flotilla::api
