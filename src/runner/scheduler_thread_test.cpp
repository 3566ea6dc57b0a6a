#include "runner/scheduler_thread.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "runner/test_scheduler_thread.h"

namespace flotilla::runner {
namespace {

TEST_F(SchedulerThreadTest, AnswersDoNotDependOnCompany) {
  const auto thread = make(4);
  for (SequenceId id = 1; id <= 12; ++id) ASSERT_TRUE(thread->start(sequence(id)));
  for (SequenceId id = 1; id <= 12; ++id) {
    seen_.wait_over(id);
    const auto answer = seen_.answer(id);
    EXPECT_EQ(answer.text, alone(sequence(id)).text);
    EXPECT_EQ(answer.tokens.size(), 40U);
    EXPECT_EQ(answer.finish, FinishReason::Length);
  }
}

TEST_F(SchedulerThreadTest, AFailedPassEndsItsSequencesAndNoOther) {
  faults_->failed_passes = {5};
  const auto thread = make(2);
  for (SequenceId id = 1; id <= 4; ++id) ASSERT_TRUE(thread->start(sequence(id)));
  for (SequenceId id = 1; id <= 4; ++id) seen_.wait_over(id);
  int failed = 0;
  for (SequenceId id = 1; id <= 4; ++id) {
    const auto answer = seen_.answer(id);
    if (answer.error) {
      ++failed;
      EXPECT_EQ(answer.error->code, Code::Internal);
    } else {
      EXPECT_EQ(answer.text, alone(sequence(id)).text);
    }
  }
  EXPECT_GE(failed, 1);
  EXPECT_LE(failed, 2);
}

struct AnythingGoes final : engine::Grammar {
  bool allows(engine::Token) const override { return true; }
  void mask(std::span<float>) const override {}
  void accept(engine::Token) override {}
};

TEST_F(SchedulerThreadTest, RulesThatTakeTooLongForATokenEndTheirOwnSequence) {
  options_.rules_max = Duration(-1);  // whatever they take is too long
  const auto thread = make(2);
  ASSERT_TRUE(thread->start(sequence(1), std::make_unique<AnythingGoes>()));
  ASSERT_TRUE(thread->start(sequence(2)));
  for (const SequenceId id : {1, 2}) seen_.wait_over(id);
  const auto shaped = seen_.answer(1);
  ASSERT_TRUE(shaped.error);
  EXPECT_EQ(shaped.error->reason, "grammar_too_complex");
  EXPECT_EQ(shaped.text, "");
  EXPECT_EQ(seen_.answer(2).text, alone(sequence(2)).text);
}

TEST_F(SchedulerThreadTest, AbortedPassesChangeNothing) {
  faults_->aborted_passes = {2, 3, 7, 8, 20};
  const auto thread = make(3);
  for (SequenceId id = 1; id <= 5; ++id) ASSERT_TRUE(thread->start(sequence(id)));
  for (SequenceId id = 1; id <= 5; ++id) {
    seen_.wait_over(id);
    EXPECT_EQ(seen_.answer(id).text, alone(sequence(id)).text);
  }
}

TEST_F(SchedulerThreadTest, WithoutSpaceTheYoungestGivesWayAndGoesOnLater) {
  faults_->full_passes = {6, 15};
  const auto thread = make(3);
  for (SequenceId id = 1; id <= 4; ++id) ASSERT_TRUE(thread->start(sequence(id)));
  for (SequenceId id = 1; id <= 4; ++id) {
    seen_.wait_over(id);
    EXPECT_EQ(seen_.answer(id).text, alone(sequence(id)).text);
  }
}

TEST_F(SchedulerThreadTest, WithoutSpaceForASingleOneItIsRefused) {
  faults_->full_passes = {3};
  const auto thread = make(2);
  ASSERT_TRUE(thread->start(sequence(1)));
  seen_.wait_over(1);
  ASSERT_TRUE(seen_.answer(1).error);
  EXPECT_EQ(seen_.answer(1).error->code, Code::ResourceExhausted);
  ASSERT_TRUE(thread->start(sequence(2)));
  seen_.wait_over(2);
  EXPECT_EQ(seen_.answer(2).text, alone(sequence(2)).text);
}

TEST_F(SchedulerThreadTest, ParkedSequencesAreSilentAndGoOnWhereTheyWere) {
  for (const bool faulty : {false, true}) {
    faults_->saves_fail = faulty;
    faults_->restores_fail = faulty;
    seen_.wait([this] { return seen_.answers().clear(), true; });
    const auto thread = make(1);
    ASSERT_TRUE(thread->start(sequence(1, 300)));
    seen_.wait([this] { return seen_.answers()[1].tokens.size() > 5; });
    thread->park(1);
    ASSERT_TRUE(thread->start(sequence(2)));  // needs the only slot: 1 is saved away
    seen_.wait_over(2);
    EXPECT_FALSE(seen_.answer(1).over());
    EXPECT_EQ(seen_.answer(2).text, alone(sequence(2)).text);
    thread->unpark(1);
    seen_.wait_over(1);
    EXPECT_EQ(seen_.answer(1).text, alone(sequence(1, 300)).text);
  }
}

TEST_F(SchedulerThreadTest, EndedSequencesSayNothingMoreAndFreeTheirPlace) {
  options_.sequences_max = 2;
  const auto thread = make(1, 4096);
  ASSERT_TRUE(thread->start(sequence(1, 4000)));
  ASSERT_TRUE(thread->start(sequence(2, 4000)));
  EXPECT_FALSE(thread->start(sequence(3)));
  seen_.wait([this] { return !seen_.answers()[1].text.empty(); });
  thread->end(1);
  thread->end(77);
  seen_.wait([this] { return !seen_.answers()[2].text.empty(); });
  thread->end(2);
  seen_.wait([this] { return seen_.stats().running + seen_.stats().waiting == 0; });
  EXPECT_FALSE(seen_.answer(1).over());
  ASSERT_TRUE(thread->start(sequence(3)));
  seen_.wait_over(3);
  EXPECT_TRUE(seen_.answer(3).finish);
}

// A pass takes an hour: only its abort ends it.
TEST_F(SchedulerThreadTest, APassThatNobodyWaitsForIsAborted) {
  fake_.per_step = std::chrono::hours(1);
  const auto thread = make(2);
  ASSERT_TRUE(thread->start(sequence(1)));
  wait_pass(0);
  ASSERT_TRUE(thread->start(sequence(2)));
  const int begun = faults_->begun;
  thread->end(1);  // prefilling, alone in its pass
  wait_pass(begun);
  EXPECT_EQ(faults_->aborted, 1);
  thread->end(2);
  seen_.wait([this] { return seen_.stats().step == 2 && seen_.stats().running == 0; });
  EXPECT_EQ(faults_->aborted, 2);
}

TEST_F(SchedulerThreadTest, APassThatSomebodyWaitsForGoesOn) {
  const auto thread = make(3, 4096);
  for (SequenceId id = 1; id <= 3; ++id) ASSERT_TRUE(thread->start(sequence(id, 300)));
  seen_.wait([this] {
    const auto& answers = seen_.answers();
    return answers.size() == 3 && std::ranges::all_of(answers, [](const auto& answer) {
             return !answer.second.text.empty();
           });
  });
  thread->end(1);
  thread->end(2);
  seen_.wait_over(3);
  EXPECT_EQ(seen_.answer(3).text, alone(sequence(3, 300)).text);
  EXPECT_LE(faults_->aborts, 1) << "2 may have been alone in a pass, if 3 was over";
}

TEST_F(SchedulerThreadTest, MemoryIsGivenBackAsOftenAsAsked) {
  options_.trim_every = 10;
  {
    const auto thread = make(1);
    ASSERT_TRUE(thread->start(sequence(1, 35)));
    seen_.wait_over(1);
  }
  EXPECT_EQ(faults_->trims, 3);
}

TEST_F(SchedulerThreadTest, GivenTokensThatEndTheAnswerEndItAtOnce) {
  const auto whole = alone(sequence(1));
  const auto thread = make(1);
  SequenceStart start = sequence(1);
  start.answer.given = whole.tokens;
  ASSERT_TRUE(thread->start(start));
  seen_.wait_over(1);
  EXPECT_EQ(seen_.answer(1).text, "");
  EXPECT_EQ(seen_.answer(1).finish, FinishReason::Length);
}

}  // namespace
}  // namespace flotilla::runner
