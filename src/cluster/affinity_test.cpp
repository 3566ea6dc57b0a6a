#include "cluster/affinity.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace flotilla::cluster {
namespace {

using std::chrono::seconds;

// "u:hello" is a user's message, "a:…" an assistant's, "s:…" the system's.
ConversationKeys keys(const std::vector<std::string>& messages, std::string_view group = "g",
                      std::string_view session = {}) {
  std::vector<MessageDigest> digests;
  for (const std::string& text : messages) {
    digests.push_back({.hash = digest(text), .assistant = text.starts_with("a:")});
  }
  return conversation_keys(group, session, digests);
}

struct AffinityTest : testing::Test {
  Instant now = Instant{} + std::chrono::hours(1);
  AffinityTable table{AffinitySettings{.ttl = seconds(100), .entries_max = 1000}};
  const Launch one{ReplicaIndex{1}, 1};
  const Launch two{ReplicaIndex{2}, 1};
};

TEST_F(AffinityTest, a_conversation_is_found_by_the_prompt_of_its_last_answer) {
  table.settle(keys({"s:be nice", "u:hi"}), one, now);
  const auto second = keys({"s:be nice", "u:hi", "a:hello", "u:how are you"});
  EXPECT_EQ(table.find_home(second, now), one);
  table.settle(second, two, now);  // it had to move
  const auto third = keys({"s:be nice", "u:hi", "a:hello", "u:how are you", "a:fine", "u:bye"});
  EXPECT_EQ(table.find_home(third, now), two);
}

TEST_F(AffinityTest, an_edited_turn_goes_back_to_where_the_rest_is) {
  table.settle(keys({"u:1"}), one, now);
  table.settle(keys({"u:1", "a:2", "u:3"}), one, now);
  EXPECT_EQ(table.find_home(keys({"u:1", "a:2", "u:another"}), now), one);
}

TEST_F(AffinityTest, a_shared_system_prompt_attracts_nobody) {
  table.settle(keys({"s:be nice", "u:hi"}), one, now);
  EXPECT_FALSE(table.find_home(keys({"s:be nice", "u:other"}), now));
  EXPECT_FALSE(table.find_home(keys({"s:be nice", "u:hi"}), now));
  EXPECT_FALSE(table.find_home(keys({"s:be nice", "u:other", "a:x", "u:y"}), now));
}

TEST_F(AffinityTest, a_first_prompt_that_many_send_names_no_home) {
  table.settle(keys({"u:hi"}), one, now);
  table.settle(keys({"u:hi"}), two, now);
  EXPECT_FALSE(table.find_home(keys({"u:hi", "a:hello", "u:more"}), now));
  table.settle(keys({"u:hi", "a:hello", "u:more"}), one, now);
  EXPECT_EQ(table.find_home(keys({"u:hi", "a:hello", "u:more", "a:x", "u:y"}), now), one);
}

TEST_F(AffinityTest, a_session_id_comes_first_and_groups_do_not_mix) {
  table.settle(keys({"u:hi"}, "g", "s1"), one, now);
  EXPECT_EQ(table.find_home(keys({"u:something else"}, "g", "s1"), now), one);
  EXPECT_FALSE(table.find_home(keys({"u:hi"}, "other group", "s1"), now));
  EXPECT_FALSE(table.find_home(keys({"u:hi", "a:x", "u:y"}, "other group"), now));
}

TEST_F(AffinityTest, idle_entries_expire_and_used_ones_do_not) {
  table.settle(keys({"u:a"}, "g", "idle"), one, now);
  table.settle(keys({"u:b"}, "g", "used"), one, now);
  now += seconds(60);
  table.settle(keys({"u:c"}, "g", "used"), one, now);
  now += seconds(60);
  EXPECT_FALSE(table.find_home(keys({}, "g", "idle"), now));
  EXPECT_EQ(table.find_home(keys({}, "g", "used"), now), one);
  now += seconds(200);
  table.settle(keys({}, "g", "new"), one, now);
  EXPECT_EQ(table.size(), 1U);
}

TEST_F(AffinityTest, it_is_bounded_and_the_least_recently_used_goes_first) {
  for (int i = 0; i < 3000; ++i) {
    table.settle(keys({}, "g", std::to_string(i)), one, now);
    table.settle(keys({}, "g", "hot"), two, now);
  }
  EXPECT_EQ(table.size(), 1000U);
  EXPECT_EQ(table.find_home(keys({}, "g", "hot"), now), two);
  EXPECT_EQ(table.find_home(keys({}, "g", "2999"), now), one);
  EXPECT_FALSE(table.find_home(keys({}, "g", "1"), now));
}

TEST_F(AffinityTest, ListsEachConversationOnce) {
  table.settle(keys({"u:a"}), one, now);
  table.settle(keys({"u:a", "a:b", "u:c"}), one, now);
  const auto later = keys({"u:a", "a:b", "u:c", "a:d", "u:e"});
  table.settle(later, one, now);
  table.note_tokens(later, 77);
  const auto named = keys({"u:x"}, "g", "ann");
  table.settle(named, two, now);
  table.settle(keys({"u:x", "a:y", "u:z"}, "g", "ann"), two, now);
  const auto list = table.list(10);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].key, named.session);
  EXPECT_TRUE(list[0].named);
  EXPECT_EQ(list[0].home, two);
  EXPECT_EQ(list[1].key, later.self);
  EXPECT_EQ(list[1].tokens, 77U);
  EXPECT_EQ(table.list(1).size(), 1U);
}

}  // namespace
}  // namespace flotilla::cluster
