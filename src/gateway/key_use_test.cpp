#include "gateway/key_use.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

TEST(QueueTokens, n_choices_cost_as_much_as_n_requests) {
  api::ChatRequest one;
  EXPECT_EQ(queue_tokens(one, 400), 100U);
  EXPECT_EQ(queue_tokens(one, 2), 1U);
  api::ChatRequest eight;
  eight.n = 8;
  EXPECT_EQ(queue_tokens(eight, 400), 800U);
}

TEST(QueueTokens, prompts_are_in_the_body_and_each_has_its_choices) {
  api::ChatRequest prompts;
  prompts.raw.prompts = {"one", "two", "three"};
  prompts.n = 3;
  EXPECT_EQ(queue_tokens(prompts, 400), 100U);
  prompts.raw.each = 2;
  prompts.n = 6;
  EXPECT_EQ(queue_tokens(prompts, 400), 200U);
  EXPECT_EQ(queue_tokens(prompts, 4), 6U) << "each is a sequence of one token at least";
}

}  // namespace
}  // namespace flotilla::gateway
