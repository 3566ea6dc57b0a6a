#include "engine/late_systems.h"

#include <gtest/gtest.h>

namespace flotilla::engine {
namespace {

// Each message as its role's letter and its text.
std::string put(const std::string& messages) {
  const auto role_of = [](char letter) -> std::string {
    return letter == 's' ? "system" : letter == 'u' ? "user" : letter == 'a' ? "assistant" : "tool";
  };
  std::vector<ChatMessage> list;
  for (std::size_t at = 0; at < messages.size(); at += 2) {
    list.push_back({.role = role_of(messages[at]), .content = messages.substr(at + 1, 1)});
  }
  std::string out;
  for (const ChatMessage& message : put_late_systems_in_turns(list)) {
    out += (out.empty() ? "" : " ") + message.role.substr(0, 1) + message.content;
  }
  return out;
}

TEST(LateSystems, ThoseInFrontAreOne) {
  EXPECT_EQ(put("s1u2"), "s1 u2");
  EXPECT_EQ(put("s1s2s3u4"), "s1\n\n2\n\n3 u4");
  EXPECT_EQ(put("s1s2"), "s1\n\n2");
  EXPECT_EQ(put(""), "");
}

TEST(LateSystems, LaterOnesStandInTheTurnBesideThem) {
  EXPECT_EQ(put("s1u2a3s4u5"), "s1 u2 a3 u4\n\n5");
  EXPECT_EQ(put("u1s2"), "u1\n\n2");
  EXPECT_EQ(put("u1s2u3"), "u1\n\n2\n\n3");
  EXPECT_EQ(put("u1s2s3a4"), "u1\n\n2\n\n3 a4");
}

TEST(LateSystems, WhereNoUserSpeaksTheyAreATurn) {
  EXPECT_EQ(put("u1a2s3"), "u1 a2 u3");
  EXPECT_EQ(put("u1a2t3s4a5"), "u1 a2 t3 u4 a5");
}

TEST(LateSystems, UsersThemselvesAreNotJoined) {
  EXPECT_EQ(put("u1u2a3u4u5"), "u1 u2 a3 u4 u5");
  EXPECT_EQ(put("u1s2a3u4"), "u1\n\n2 a3 u4");
}

}  // namespace
}  // namespace flotilla::engine
