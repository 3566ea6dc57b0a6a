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

TEST(CacheShared, is_said_by_the_load_or_where_nobody_is_told_apart) {
  KeyRing none;
  KeyRing some;
  some.put({.id = "k", .hash = "h", .spec = {.name = "k"}});
  api::LoadSpec load;
  EXPECT_TRUE(is_cache_shared(none, false, load));
  EXPECT_FALSE(is_cache_shared(none, true, load));
  EXPECT_FALSE(is_cache_shared(some, false, load));
  load.share_prefixes = true;
  EXPECT_TRUE(is_cache_shared(some, true, load));
}

TEST(CacheSalt, tells_groups_apart_and_not_which_they_are) {
  const std::string salt = cache_salt("secret", "group team");
  EXPECT_EQ(salt.size(), 64U);
  EXPECT_EQ(salt, cache_salt("secret", "group team"));
  EXPECT_NE(salt, cache_salt("secret", "group tea"));
  EXPECT_NE(salt, cache_salt("another", "group team"));
}

TEST(ConversationScope, is_the_groups_else_the_owners_and_not_to_be_worked_out) {
  const std::string team = conversation_scope("secret", "group team", "key-1");
  EXPECT_EQ(team, conversation_scope("secret", "group team", "key-2"));
  EXPECT_NE(team, conversation_scope("secret", "group tea", "key-1"));
  EXPECT_NE(team, conversation_scope("another", "group team", "key-1"));
  EXPECT_NE(team, cache_salt("secret", "group team")) << "which an engine is told";
  const std::string alone = conversation_scope("secret", "", "10.0.0.1");
  EXPECT_EQ(alone, conversation_scope("secret", "", "10.0.0.1"));
  EXPECT_NE(alone, conversation_scope("secret", "", "10.0.0.2"));
}

}  // namespace
}  // namespace flotilla::gateway
