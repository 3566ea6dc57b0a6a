#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "runner/test_scheduler_thread.h"

namespace flotilla::runner {
namespace {

// What the second of two sequences need not compute again, and that its answer is none the worse.
class CellReuseTest : public SchedulerThreadTest {
 protected:
  CellReuseTest() { options_.store_bytes_max = 64 << 20; }

  static SequenceStart start(SequenceId id, int prompt, int answer = 8) {
    SequenceStart out;
    out.id = id;
    for (int i = 0; i < prompt; ++i) {
      out.prompt.push_back(static_cast<engine::Token>('a' + (i * i + i / 7) % 26));
    }
    out.answer.sampling.seed = 7;
    out.answer.sampling.ignore_eos = true;
    out.answer.tokens_max = answer;
    return out;
  }
  Collected::Answer answer_of(SchedulerThread& thread, const SequenceStart& start) {
    EXPECT_TRUE(thread.start(start));
    seen_.wait_over(start.id);
    return seen_.answer(start.id);
  }
  // The conversation's next turn: all that was said, and more.
  static SequenceStart next_turn(SequenceStart before, const Collected::Answer& answer,
                                 SequenceId id) {
    before.id = id;
    before.prompt.insert(before.prompt.end(), answer.tokens.begin(), answer.tokens.end());
    for (int i = 0; i < 10; ++i) before.prompt.push_back('A' + i);
    return before;
  }
};

TEST_F(CellReuseTest, TheNextTurnComputesOnlyWhatIsNew) {
  const auto thread = make(2);
  const SequenceStart first = start(1, 200);
  const auto said = answer_of(*thread, first);
  EXPECT_EQ(said.cached_tokens, 0);
  const int before = faults_->tokens;
  const SequenceStart second = next_turn(first, said, 2);
  const auto answer = answer_of(*thread, second);
  EXPECT_EQ(answer.cached_tokens, 207) << "all but the last token that was said";
  EXPECT_EQ(faults_->tokens - before, 11 + 7);
  EXPECT_EQ(answer.text, alone(second).text);
}

TEST_F(CellReuseTest, TwoTurnsOfOneConversationAtOnceDoNotDamageIt) {
  const auto thread = make(4);
  const SequenceStart first = start(1, 200);
  const auto said = answer_of(*thread, first);
  std::vector<SequenceStart> turns;
  for (SequenceId id = 2; id < 8; ++id) {
    turns.push_back(next_turn(first, said, id));
    turns.back().prompt.push_back(static_cast<engine::Token>('0' + id));
    turns.back().answer.tokens_max = 30;
  }
  for (const auto& turn : turns) ASSERT_TRUE(thread->start(turn));
  for (const auto& turn : turns) {
    seen_.wait_over(turn.id);
    EXPECT_EQ(seen_.answer(turn.id).cached_tokens, 207);
    EXPECT_EQ(seen_.answer(turn.id).text, alone(turn).text);
  }
}

TEST_F(CellReuseTest, ManyWithOneBeginningComputeItOnce) {
  fake_.per_step = std::chrono::milliseconds(1);
  options_.limits.step_tokens_max = 64;
  const auto thread = make(4);
  constexpr SequenceId kMany = 12;
  for (SequenceId id = 1; id <= kMany; ++id) {
    SequenceStart one = start(id, 400);
    one.prompt.push_back(static_cast<engine::Token>('0' + id));
    ASSERT_TRUE(thread->start(one));
  }
  int cached = 0;
  for (SequenceId id = 1; id <= kMany; ++id) {
    seen_.wait_over(id);
    SequenceStart one = start(id, 400);
    one.prompt.push_back(static_cast<engine::Token>('0' + id));
    EXPECT_EQ(seen_.answer(id).text, alone(one).text);
    cached += seen_.answer(id).cached_tokens;
  }
  EXPECT_EQ(cached, 400 * (static_cast<int>(kMany) - 1));
  EXPECT_LT(faults_->tokens, 400 + 20 * static_cast<int>(kMany));
}

TEST_F(CellReuseTest, AFollowerOfOneThatIsCancelledComputesTheRest) {
  fake_.per_step = std::chrono::milliseconds(2);
  const auto thread = make(2);
  ASSERT_TRUE(thread->start(start(1, 400)));
  ASSERT_TRUE(thread->start(start(2, 400)));
  thread->end(1);
  seen_.wait_over(2);
  EXPECT_EQ(seen_.answer(2).text, alone(start(2, 400)).text);
}

TEST_F(CellReuseTest, GroupsShareNothing) {
  const auto thread = make(2);
  SequenceStart mine = start(1, 200);
  mine.cache_group = "mine";
  answer_of(*thread, mine);
  SequenceStart theirs = start(2, 200);
  theirs.cache_group = "theirs";
  EXPECT_EQ(answer_of(*thread, theirs).cached_tokens, 0);
  mine.id = 3;
  EXPECT_EQ(answer_of(*thread, mine).cached_tokens, 199);
}

TEST_F(CellReuseTest, WithoutAStoreEverythingIsComputed) {
  options_.store_bytes_max = 0;
  const auto thread = make(2);
  answer_of(*thread, start(1, 200));
  EXPECT_EQ(answer_of(*thread, start(2, 200)).cached_tokens, 0);
}

TEST_F(CellReuseTest, CellsThatCannotBeRestoredAreComputed) {
  const auto thread = make(2);
  answer_of(*thread, start(1, 200));
  faults_->restores_fail = true;
  const auto answer = answer_of(*thread, start(2, 200));
  EXPECT_EQ(answer.cached_tokens, 0);
  EXPECT_EQ(answer.text, alone(start(2, 200)).text);
}

TEST_F(CellReuseTest, TheStoreGivesWayWhenMemoryIsShort) {
  std::atomic<std::int64_t> available = 4LL << 30;
  options_.memory_available = [&available] { return available.load(); };
  const auto thread = make(2);
  answer_of(*thread, start(1, 200));
  seen_.wait([this] { return seen_.stats().stored == 1; });
  available = 0;
  SequenceStart other = start(2, 200);
  std::ranges::reverse(other.prompt);
  answer_of(*thread, other);
  seen_.wait([this] { return seen_.stats().stored == 0; });
}

// Memory for one conversation; the others go to the disk and come back, after a restart too.
TEST_F(CellReuseTest, WhatMemoryHasNoRoomForComesBackFromTheDisk) {
  std::string folder = std::filesystem::temp_directory_path() / "flotilla-cells-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  options_.disk_folder = folder;
  options_.disk_bytes_max = 64 << 20;
  std::vector<SequenceStart> turns;
  std::int64_t file = 0;
  {
    auto probe = make(2);
    (void)answer_of(*probe, start(100, 200));
    options_.store_bytes_max = seen_.stats().stored_bytes * 3 / 2;
    // In memory: cells and 207 tokens. A file has a head besides, and its tokens are known.
    file = seen_.stats().stored_bytes + 207 * 4 + 96;
  }
  const auto wait_for_files = [&](int count) {
    seen_.wait([&] { return seen_.stats().disk_bytes >= count * file; });
  };
  auto thread = make(2);
  for (SequenceId id = 1; id <= 4; ++id) {
    SequenceStart first = start(id, 200);
    for (engine::Token& token : first.prompt) token = 'a' + (token + static_cast<int>(id)) % 26;
    turns.push_back(next_turn(first, answer_of(*thread, first), 10 + id));
  }
  wait_for_files(3);  // memory has the fourth
  for (int again = 0; again < 2; ++again) {
    for (SequenceStart& turn : turns) {
      turn.id += 20;
      const auto answer = answer_of(*thread, turn);
      EXPECT_GE(answer.cached_tokens, 207) << turn.id;
      EXPECT_EQ(answer.text, alone(turn).text);
      if (again == 0) wait_for_files(4);
    }
    // The last one has not been put aside; all others lie on the disk when it starts again.
    turns.pop_back();
    thread.reset();
    thread = make(2);
  }
  thread.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace flotilla::runner
