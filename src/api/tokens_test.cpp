#include "api/tokens.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(Tokenize, TakesLlamaServersWordsAndVllms) {
  const auto llama = parse_tokenize(R"({"content":"a","add_special":true,"with_pieces":true})");
  ASSERT_TRUE(llama);
  EXPECT_EQ(llama->text, "a");
  EXPECT_TRUE(llama->add_special && llama->pieces);
  EXPECT_FALSE(llama->parse_special || llama->messages);
  EXPECT_FALSE(parse_tokenize(R"({"content":"a"})")->add_special);

  const auto vllm = parse_tokenize(R"({"model":"m","prompt":"a","return_token_strs":true})");
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->model, "m");
  EXPECT_TRUE(vllm->add_special && vllm->pieces);
  EXPECT_FALSE(parse_tokenize(R"({"prompt":"a","add_special_tokens":false})")->add_special);
  EXPECT_TRUE(parse_tokenize(R"({"messages":[{"role":"user","content":"a"}]})")->messages);

  EXPECT_EQ(parse_tokenize("{}").error().param, "prompt");
  EXPECT_EQ(parse_tokenize(R"({"content":5})").error().param, "content");
  EXPECT_EQ(
      to_json(TokenizeAnswer{.model = "m", .tokens = {1, 2}, .pieces = {"a", "b"}, .context = 9}),
      R"({"model":"m","tokens":[1,2],"count":2,"max_model_len":9,"token_strs":["a","b"]})");
}

TEST(Detokenize, WantsTokenIds) {
  EXPECT_EQ(parse_detokenize(R"({"tokens":[1,-2]})")->tokens, (std::vector<std::int32_t>{1, -2}));
  EXPECT_EQ(parse_detokenize("{}").error().param, "tokens");
  EXPECT_EQ(parse_detokenize(R"({"tokens":[1,"x"]})").error().param, "tokens[1]");
  EXPECT_EQ(parse_detokenize(R"({"tokens":[99999999999]})").error().param, "tokens[0]");
  EXPECT_EQ(detokenize_json("a\"b"), R"({"content":"a\"b","prompt":"a\"b"})");
}

TEST(ModelName, is_read) {
  EXPECT_EQ(*read_model_name(R"({"model":"m","x":1})"), "m");
  EXPECT_EQ(*read_model_name("{}"), "");
  EXPECT_FALSE(read_model_name(R"({"model":5})"));
  EXPECT_FALSE(read_model_name("["));
}

}  // namespace
}  // namespace flotilla::api
