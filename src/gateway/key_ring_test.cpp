#include "gateway/key_ring.h"

#include <set>

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::seconds;

struct KeyRingTest : testing::Test {
  std::string add(const std::string& id, api::KeySpec spec) {
    const std::string secret = make_secret();
    spec.name = id;
    ring.put({.id = id, .hash = hash_of_secret(secret), .spec = std::move(spec)});
    return secret;
  }
  KeyRing ring;
  ManualClock clock;
};

TEST_F(KeyRingTest, OpensByTheSecretAlone) {
  EXPECT_TRUE(ring.empty());
  const std::string secret = add("a", {});
  add("b", {});
  EXPECT_EQ(ring.find_secret(secret)->id, "a");
  EXPECT_FALSE(ring.find_secret("a"));
  EXPECT_FALSE(ring.find_secret(""));
  EXPECT_FALSE(ring.find_secret(hash_of_secret(secret))) << "what is stored opens nothing";
  EXPECT_TRUE(ring.erase("a"));
  EXPECT_FALSE(ring.erase("a"));
  EXPECT_FALSE(ring.find_secret(secret));
  EXPECT_EQ(ring.find_name("b")->id, "b");
  EXPECT_EQ(ring.find("a"), nullptr);
}

TEST_F(KeyRingTest, SecretsAreLongAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(make_secret());
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 43U);
}

TEST_F(KeyRingTest, AKeyExpires) {
  const std::string secret = add("a", {.name = "", .expires_unix_s = 100});
  EXPECT_FALSE(ring.find_secret(secret)->has_expired(99));
  EXPECT_TRUE(ring.find_secret(secret)->has_expired(100));
}

TEST_F(KeyRingTest, AChangeGivesNothingBack) {
  const std::string secret =
      add("a", {.name = "", .requests_per_min = 2, .tokens_per_min = 100, .max_in_flight = 1});
  KeyRing::Key changed = *ring.find("a");
  const auto lease = ring.enter("a", {.tokens = 80}, clock.now());
  ASSERT_TRUE(lease && ring.take_request("a", clock.now()) && ring.take_request("a", clock.now()));
  changed.spec.weight = 2;
  ring.put(changed);
  EXPECT_EQ(ring.find_secret(secret)->spec.weight, 2);
  EXPECT_FALSE(ring.take_request("a", clock.now()));
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 20);
  EXPECT_EQ(ring.list().at(0).in_flight, 1);
  EXPECT_FALSE(ring.enter("a", {.tokens = 1}, clock.now())) << "the first is still under way";
  changed.spec.requests_per_min = 0;
  ring.put(changed);
  EXPECT_TRUE(ring.take_request("a", clock.now()));
  changed.spec.requests_per_min = 3;
  ring.put(changed);
  EXPECT_EQ(ring.requests_left("a", clock.now()).left, 3) << "had no bound";
}

TEST_F(KeyRingTest, RequestsAMinuteComeBackEvenly) {
  add("a", {.name = "", .requests_per_min = 60});
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(ring.take_request("a", clock.now()));
  const auto refused = ring.take_request("a", clock.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::ResourceExhausted);
  EXPECT_EQ(refused.error().retry_after_s, 1);
  EXPECT_EQ(ring.requests_left("a", clock.now()).left, 0);
  clock.advance(seconds(1));
  EXPECT_TRUE(ring.take_request("a", clock.now()));
  EXPECT_FALSE(ring.take_request("a", clock.now()));
  clock.advance(seconds(3600));
  EXPECT_EQ(ring.requests_left("a", clock.now()).left, 60) << "no more than a minute's worth";
}

TEST_F(KeyRingTest, TokensAreChargedWhenItComesAndSettledWhenItEnds) {
  add("a", {.name = "", .tokens_per_min = 600});
  auto lease = ring.enter("a", {.tokens = 100}, clock.now());
  ASSERT_TRUE(lease);
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 500);
  lease->settle(600, 100, clock.now());
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 0);
  EXPECT_EQ(ring.enter("a", {.tokens = 50}, clock.now()).error().retry_after_s, 15)
      << "the debt of 100 first";
  clock.advance(seconds(15));
  EXPECT_TRUE(ring.enter("a", {.tokens = 50}, clock.now()));
  clock.advance(seconds(60));
  EXPECT_TRUE(ring.enter("a", {.tokens = 10'000}, clock.now()))
      << "larger than a minute's worth, and alone";
  EXPECT_FALSE(ring.enter("a", {.tokens = 1}, clock.now()));
}

TEST_F(KeyRingTest, WhatWasMadeIsChargedWhetherOrNotAnybodyCountedThePrompt) {
  add("a", {.name = "", .tokens_per_min = 600});
  auto lease = ring.enter("a", {.tokens = 100}, clock.now());
  ASSERT_TRUE(lease);
  lease->settle(0, 0, clock.now());
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 500);
  lease->settle(0, 300, clock.now());
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 200);
  lease->settle(20, 300, clock.now());
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 280) << "once it is told it counts";
}

TEST_F(KeyRingTest, ALongAnswerIsPaidWhileItIsMade) {
  add("a", {.name = "", .tokens_per_min = 600});
  auto lease = ring.enter("a", {.tokens = 100}, clock.now());
  ASSERT_TRUE(lease);
  for (std::uint64_t minute = 1; minute <= 5; ++minute) {
    clock.advance(seconds(60));
    lease->settle(100, minute * 600, clock.now());
    EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 0) << "as much comes back as goes";
  }
  clock.advance(seconds(600));
  lease->settle(100, 3600, clock.now());
  EXPECT_EQ(ring.tokens_left("a", clock.now()).left, 0) << "no more than a minute's worth is saved";
  *lease = KeyRing::Lease();
  auto unbounded = ring.enter("a", {.tokens = 1}, clock.now() + seconds(60));
  ring.put({.id = "a", .hash = "h", .spec = {.name = ""}});
  unbounded->settle(1, 1'000'000, clock.now());  // its bound is gone; nothing happens
}

TEST_F(KeyRingTest, RequestsAtOnceAreCountedWhileTheyLive) {
  add("a", {.name = "", .max_in_flight = 2});
  auto first = ring.enter("a", {.tokens = 1}, clock.now());
  auto second = ring.enter("a", {.tokens = 1}, clock.now());
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(ring.enter("a", {.tokens = 1}, clock.now()));
  EXPECT_EQ(ring.list().at(0).in_flight, 2);
  *first = KeyRing::Lease();
  EXPECT_TRUE(ring.enter("a", {.tokens = 1}, clock.now()));
  ring.erase("a");
  EXPECT_FALSE(ring.enter("a", {.tokens = 1}, clock.now()));
  second->settle(5, 0, clock.now());  // its key is gone; nothing happens
}

TEST_F(KeyRingTest, EachAnswerOfARequestCounts) {
  add("a", {.name = "", .max_in_flight = 4});
  auto three = ring.enter("a", {.sequences = 3}, clock.now());
  ASSERT_TRUE(three);
  EXPECT_EQ(ring.list().at(0).in_flight, 3);
  EXPECT_EQ(ring.enter("a", {.sequences = 2}, clock.now()).error().code, Code::ResourceExhausted);
  auto one = ring.enter("a", {.sequences = 1}, clock.now());
  EXPECT_TRUE(one);
  *three = KeyRing::Lease();
  EXPECT_EQ(ring.list().at(0).in_flight, 1);
  const auto never = ring.enter("a", {.sequences = 5}, clock.now());
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::PermissionDenied) << "waiting would not help";
  EXPECT_EQ(never.error().retry_after_s, 0);
}

TEST_F(KeyRingTest, WhatNeedNotRunTogetherTakesWhatIsLeft) {
  add("a", {.name = "", .max_in_flight = 4});
  const auto one = ring.enter("a", {}, clock.now());
  auto inputs = ring.enter("a", {.sequences = 100, .in_turn = true}, clock.now());
  ASSERT_TRUE(one && inputs);
  EXPECT_EQ(ring.list().at(0).in_flight, 4);
  EXPECT_FALSE(ring.enter("a", {.sequences = 100, .in_turn = true}, clock.now()));
  *inputs = KeyRing::Lease();
  EXPECT_EQ(ring.list().at(0).in_flight, 1);
}

TEST_F(KeyRingTest, AKeyWithoutBoundsIsNeverRefused) {
  add("a", {});
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(ring.take_request("a", clock.now()) &&
                ring.enter("a", {.tokens = 1'000'000}, clock.now()));
  EXPECT_EQ(ring.requests_left("a", clock.now()).limit, 0);
}

TEST_F(KeyRingTest, who_is_refused_for_a_quota_is_told_what_is_left_of_each) {
  add("a", {.name = "", .requests_per_min = 2, .tokens_per_min = 600, .max_in_flight = 1});
  const auto value = [](const Error& error, const std::string& name) {
    for (const auto& [field, text] : error.fields) {
      if (field == "x-ratelimit-" + name) return text;
    }
    return std::string("none");
  };
  const auto lease = ring.enter("a", {.tokens = 500}, clock.now());
  ASSERT_TRUE(lease && ring.take_request("a", clock.now()) && ring.take_request("a", clock.now()));
  const Error requests = ring.take_request("a", clock.now()).error();
  EXPECT_EQ(value(requests, "limit-requests"), "2");
  EXPECT_EQ(value(requests, "remaining-requests"), "0");
  EXPECT_EQ(value(requests, "reset-requests"), "60.000s");
  EXPECT_EQ(value(requests, "limit-tokens"), "600");
  EXPECT_EQ(value(requests, "remaining-tokens"), "100");
  EXPECT_EQ(value(requests, "reset-tokens"), "50.000s");
  const Error at_once = ring.enter("a", {.tokens = 1}, clock.now()).error();
  EXPECT_EQ(value(at_once, "remaining-tokens"), "100");
  add("b", {.name = "", .tokens_per_min = 10});
  ASSERT_TRUE(ring.enter("b", {.tokens = 8}, clock.now()));
  const Error tokens = ring.enter("b", {.tokens = 8}, clock.now()).error();
  EXPECT_EQ(value(tokens, "remaining-tokens"), "2");
  EXPECT_EQ(value(tokens, "limit-requests"), "none") << "has no bound";
}

}  // namespace
}  // namespace flotilla::gateway
