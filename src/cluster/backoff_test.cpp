#include "cluster/backoff.h"

#include <chrono>

#include <gtest/gtest.h>

namespace flotilla::cluster {
namespace {

using std::chrono::seconds;

TEST(Backoff, doubles_from_min_to_max_with_at_most_a_tenth_more) {
  Random random(1);
  Backoff backoff(seconds(30), seconds(300));
  for (const int expected : {30, 60, 120, 240, 300, 300, 300}) {
    const Duration pause = backoff.next(random);
    EXPECT_GE(pause, seconds(expected));
    EXPECT_LE(to_s(pause), expected * 1.1);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(random), seconds(33));
}

TEST(Backoff, jitter_spreads_replicas_that_failed_together) {
  Random random(7);
  Backoff a(seconds(30), seconds(300));
  Backoff b(seconds(30), seconds(300));
  EXPECT_NE(a.next(random), b.next(random));
}

TEST(Backoff, a_lower_maximum_holds_at_once) {
  Random random(1);
  Backoff backoff(seconds(30), seconds(300));
  for (int i = 0; i < 5; ++i) (void)backoff.next(random);
  backoff.configure(seconds(1), seconds(2));
  EXPECT_LE(to_s(backoff.next(random)), 2.2);
}

}  // namespace
}  // namespace flotilla::cluster
