#include "engine/thread_choice.h"

#include <gtest/gtest.h>

namespace flotilla::engine {
namespace {

// Passes of 5 ms for `ms`, on a machine that gives this process `cores` at most.
void compute(ThreadChoice& choice, double ms, double cores) {
  for (double at = 0; at < ms; at += 5) {
    choice.observe(5, 5 * (choice.threads() < cores ? choice.threads() : cores));
  }
}

TEST(ThreadChoice, AllThreadsOnAQuietMachine) {
  ThreadChoice choice(8);
  compute(choice, 10'000, 8);
  EXPECT_EQ(choice.threads(), 8);
  compute(choice, 10'000, 6);
  EXPECT_EQ(choice.threads(), 8) << "one that is interrupted now and then is still the faster";
}

TEST(ThreadChoice, FewerWhereOthersComputeAndAllAgainAfterwards) {
  ThreadChoice choice(8);
  compute(choice, 100, 3.2);
  EXPECT_EQ(choice.threads(), 3);
  compute(choice, 100, 0.4);
  EXPECT_EQ(choice.threads(), 1);
  compute(choice, ThreadChoice::kRetryMinMs + 100, 8);
  EXPECT_EQ(choice.threads(), 8);
}

TEST(ThreadChoice, TriesNoMoreWhileTheFewAreInterrupted) {
  ThreadChoice choice(2);
  compute(choice, 100, 0.6);
  for (int i = 0; i < 60'000 / 5; ++i) {
    compute(choice, 5, 0.6);
    ASSERT_EQ(choice.threads(), 1);
  }
}

TEST(ThreadChoice, TriesMoreLessAndLessOftenWhileItIsInVain) {
  ThreadChoice choice(2);
  int tries = 0;
  int before = 2;
  for (int i = 0; i < 60'000 / 5; ++i) {
    compute(choice, 5, 1);  // one core is free, two are not
    if (choice.threads() == 2 && before == 1) ++tries;
    before = choice.threads();
  }
  EXPECT_GE(tries, 3);
  EXPECT_LE(tries, 7);
}

TEST(ThreadChoice, OneThreadHasNoChoice) {
  ThreadChoice choice(1);
  compute(choice, 1000, 0.1);
  EXPECT_EQ(choice.threads(), 1);
}

}  // namespace
}  // namespace flotilla::engine
