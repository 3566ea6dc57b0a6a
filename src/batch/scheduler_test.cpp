#include "batch/scheduler.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "batch/test_body.h"
#include "batch/test_engine.h"
#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

using engine::Token;
using Fault = TestBody::Fault;

constexpr Instant kStart = Instant{} + std::chrono::hours(1);

std::vector<Token> tokens(int count) {
  std::vector<Token> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

Duration ms(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(value));
}

// 5 ms and 0.2 ms a sequence or drafted token when anybody decodes, 1 ms a prompt token.
Duration cost(const TestBody::Pass& pass) {
  return ms((pass.decoding > 0 ? 5 : 1) + 0.2 * (pass.decoding + pass.drafted) +
            pass.prefill_tokens());
}

// Runs passes until nothing lives that is not parked.
struct Bench {
  explicit Bench(const Limits& limits, int period = 0)
      : engine(limits.width, limits.context, limits.step_tokens_max, period),
        body(limits, engine) {}

  TestBody::Pass step(Fault fault = Fault::None) {
    const TestBody::Pass pass = body.step(now, fault, random, cost);
    now += pass.took;
    return pass;
  }
  template <class Until>
  void run_until(Until until) {
    for (int i = 0; !until(); ++i) {
      ASSERT_LT(i, 100'000);
      step();
      ASSERT_TRUE(body.breaches().empty()) << body.breaches().front();
    }
  }
  bool done(SequenceId id) const { return body.finished().contains(id); }
  double first_token_ms(SequenceId id) const {
    const TestBody::Request& request = body.finished().at(id);
    return to_ms(request.first_token - request.arrived);
  }

  TestEngine engine;
  TestBody body;
  Random random{1};
  Instant now = kStart;
};

TEST(Scheduler, a_prompt_is_prefilled_and_answered) {
  Bench bench({.width = 2, .context = 64, .step_tokens_max = 16});
  const SequenceId id = bench.body.submit(tokens(40), 5, bench.now);
  EXPECT_EQ(bench.body.scheduler().phase(id), Phase::Waiting);
  EXPECT_EQ(bench.body.scheduler().prefill_backlog(), 40);
  bench.step();
  EXPECT_EQ(bench.body.scheduler().phase(id), Phase::Prefilling);
  EXPECT_EQ(bench.body.scheduler().prefill_backlog(), 24);
  bench.step();
  bench.step();
  EXPECT_EQ(bench.body.scheduler().phase(id), Phase::Decoding);
  bench.run_until([&] { return bench.done(id); });
  EXPECT_EQ(bench.body.scheduler().phase(id), Phase::Ended);
  TestEngine alone(1, 64, 16);
  EXPECT_EQ(bench.body.finished().at(id).answer, answer_alone(alone, tokens(40), 5));
}

TEST(Scheduler, a_long_prompt_stalls_no_stream) {
  Bench bench({.width = 8, .context = 9000});
  std::vector<SequenceId> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(bench.body.submit(tokens(10), 4000, bench.now));
  for (int i = 0; i < 50; ++i) bench.step();
  const SequenceId prompt = bench.body.submit(tokens(7800), 2, bench.now);
  SequenceId small = 0;
  double longest = 0;
  double small_ms = 0;
  int passes = 0;
  while (!bench.done(prompt)) {
    ASSERT_LT(++passes, 10'000);
    longest = std::max(longest, to_ms(bench.step().took));
    if (passes == 50) small = bench.body.submit(tokens(60), 1, bench.now);
  }
  small_ms = bench.first_token_ms(small);
  EXPECT_LE(longest, 51);
  EXPECT_LE(small_ms, 200);
  // 7800 ms alone; 5.8 of 50 ms are decoding's.
  EXPECT_LE(bench.first_token_ms(prompt), 1.25 * 7800);
}

TEST(Scheduler, a_long_prompt_alone_takes_large_passes) {
  Bench bench({.width = 4, .context = 4000, .step_tokens_max = 512});
  bench.body.submit(tokens(2048), 1, bench.now);
  EXPECT_EQ(bench.step().prefill_tokens(), 512);
  int passes = 1;
  while (!bench.body.live().empty()) {
    EXPECT_LE(to_ms(bench.step().took), 601);
    ++passes;
  }
  EXPECT_LE(passes, 6);
}

TEST(Scheduler, a_free_slot_is_kept_for_short_prompts_when_long_ones_crowd) {
  Bench bench({.width = 8, .prefill_batch = 4, .context = 4000});
  for (int i = 0; i < 8; ++i) bench.body.submit(tokens(3000), 50, bench.now);
  bench.step();
  EXPECT_EQ(bench.body.scheduler().load().waiting, 4);
  const SequenceId small = bench.body.submit(tokens(20), 1, bench.now);
  bench.step();
  EXPECT_TRUE(bench.done(small));
}

TEST(Scheduler, a_request_of_many_sequences_keeps_nobody_waiting_for_all_of_them) {
  for (const int width : {1, 2, 8}) {
    Bench bench({.width = width, .context = 200});
    std::vector<SequenceId> many;
    for (int i = 0; i < 128; ++i) many.push_back(bench.body.submit(tokens(5), 20, bench.now, 1));
    // Nobody else is there: it gets all the slots.
    bench.run_until([&] { return bench.body.scheduler().load().waiting == 128 - width; });
    const SequenceId other = bench.body.submit(tokens(50), 20, bench.now, 2);
    bench.run_until([&] { return bench.done(other); });
    // The slots' next turn was its own, and that of `width` of them more at the most.
    const auto first = std::ranges::count_if(many, [&](SequenceId id) { return bench.done(id); });
    EXPECT_LE(first, 3 * width);
    bench.run_until([&] { return bench.body.live().empty(); });
  }
}

TEST(Scheduler, two_requests_of_many_sequences_take_turns) {
  Bench bench({.width = 1, .context = 200});
  std::vector<SequenceId> one;
  std::vector<SequenceId> two;
  for (int i = 0; i < 10; ++i) one.push_back(bench.body.submit(tokens(5), 4, bench.now, 1));
  for (int i = 0; i < 10; ++i) two.push_back(bench.body.submit(tokens(5), 4, bench.now, 2));
  bench.run_until([&] { return bench.done(two[4]); });
  EXPECT_FALSE(bench.done(one[6]));
}

TEST(Scheduler, a_parked_sequence_keeps_its_slot_until_others_wait) {
  Bench bench({.width = 1, .context = 64});
  const SequenceId slow = bench.body.submit(tokens(5), 20, bench.now);
  for (int i = 0; i < 4; ++i) bench.step();
  bench.body.park(slow);
  EXPECT_EQ(bench.body.scheduler().phase(slow), Phase::Parked);
  EXPECT_TRUE(bench.step().idle);
  EXPECT_GT(bench.engine.length(0), 0);
  const SequenceId other = bench.body.submit(tokens(6), 3, bench.now);
  bench.run_until([&] { return bench.done(other); });
  bench.body.unpark(slow);
  bench.run_until([&] { return bench.done(slow); });
  TestEngine alone(1, 64, 64);
  EXPECT_EQ(bench.body.finished().at(slow).answer, answer_alone(alone, tokens(5), 20));
}

TEST(Scheduler, a_parked_slot_between_decoding_ones_is_saved_away) {
  Bench bench({.width = 3, .context = 400});
  std::vector<SequenceId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(bench.body.submit(tokens(5), 300, bench.now));
  for (int i = 0; i < 10; ++i) bench.step();
  bench.body.park(ids[0]);
  for (int i = 0; i < 60; ++i) bench.step();
  EXPECT_GT(bench.engine.length(0), 0);
  EXPECT_GT(bench.engine.length(1), 0);
  EXPECT_EQ(bench.engine.length(2), 0);
}

TEST(Scheduler, what_is_saved_of_a_newcomer_is_restored_and_the_rest_computed) {
  Scheduler scheduler({.width = 2, .context = 64, .step_tokens_max = 16});
  scheduler.submit({.id = 1, .prompt = tokens(40), .held = 30}, kStart);
  EXPECT_EQ(scheduler.prefill_backlog(), 10);
  EXPECT_FALSE(scheduler.held(1)) << "it has no slot yet";
  scheduler.submit({.id = 2, .prompt = tokens(20), .held = 8}, kStart);
  StepPlan plan = scheduler.plan(kStart);
  ASSERT_EQ(plan.actions.size(), 1U) << "one copy of cells a pass";
  const auto* restore = std::get_if<RestoreSlot>(&plan.actions[0]);
  ASSERT_NE(restore, nullptr);
  const SequenceId first = restore->id;
  ASSERT_EQ(plan.chunks.size(), 1U);
  EXPECT_EQ(plan.chunks[0].pos, first == 1 ? 30 : 8);
  EXPECT_EQ(scheduler.held(first)->tokens.size(), first == 1 ? 30U : 8U);
  scheduler.complete(ms(5));
  scheduler.append(first, 7);
  plan = scheduler.plan(kStart + ms(5));
  ASSERT_EQ(plan.actions.size(), 1U);
  EXPECT_EQ(std::get<RestoreSlot>(plan.actions[0]).id, 3 - first);
  scheduler.lost(99);
}

TEST(Scheduler, the_youngest_gives_way_when_the_window_ends) {
  Bench bench({.width = 4, .context = 100, .window = 200});
  // The reserve is far below what the answers grow to.
  for (int i = 0; i < 3; ++i) {
    Submission submission{.id = 1000ULL + i, .prompt = tokens(10), .answer_reserve = 1};
    bench.body.scheduler().submit(std::move(submission), bench.now);
  }
  Scheduler& scheduler = bench.body.scheduler();
  int saved = 0;
  for (int pass = 0; pass < 65; ++pass) {
    const StepPlan plan = scheduler.plan(bench.now);
    for (const SlotAction& action : plan.actions) {
      if (const auto* save = std::get_if<SaveSlot>(&action)) {
        EXPECT_EQ(save->id, 1002u);
        ++saved;
      }
    }
    std::vector<SequenceId> owed;
    for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
      if (plan.chunks[i].wants_logits) owed.push_back(plan.ids[i]);
    }
    scheduler.complete(ms(5));
    for (const SequenceId id : owed) scheduler.append(id, 1);
  }
  EXPECT_EQ(saved, 1);
  EXPECT_EQ(scheduler.phase(1002), Phase::Waiting);
  scheduler.end(1000);
  (void)scheduler.plan(bench.now);
  EXPECT_EQ(scheduler.phase(1002), Phase::Decoding);
}

TEST(Scheduler, no_space_makes_the_youngest_give_way_and_everyone_ends) {
  Bench bench({.width = 4, .context = 100});
  for (int i = 0; i < 4; ++i) bench.body.submit(tokens(10), 40, bench.now);
  for (int i = 0; i < 10; ++i) bench.step();
  bench.step(Fault::NoSpace);
  bench.run_until([&] { return bench.body.live().empty(); });
  TestEngine alone(1, 100, 100);
  for (const auto& [id, request] : bench.body.finished()) {
    EXPECT_EQ(request.answer, answer_alone(alone, tokens(10), 40));
  }
}

TEST(Scheduler, the_last_cell_is_computed_again_when_its_logits_are_lost) {
  Bench bench({.width = 1, .context = 64});
  Scheduler& scheduler = bench.body.scheduler();
  scheduler.submit({.id = 7, .prompt = tokens(10)}, bench.now);
  (void)scheduler.plan(bench.now);
  EXPECT_EQ(scheduler.roll_back(7, 10), 9);
  const StepPlan again = scheduler.plan(bench.now);
  ASSERT_EQ(again.chunks.size(), 1u);
  EXPECT_EQ(again.chunks[0].pos, 9);
  EXPECT_TRUE(again.chunks[0].wants_logits);
}

TEST(Scheduler, a_sequence_ends_in_any_phase) {
  Bench bench({.width = 2, .context = 64, .step_tokens_max = 8});
  std::vector<SequenceId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(bench.body.submit(tokens(12), 20, bench.now));
  bench.body.cancel(ids[3]);  // waiting
  bench.step();
  bench.body.cancel(ids[0]);  // prefilling
  for (int i = 0; i < 8; ++i) bench.step();
  bench.body.cancel(ids[1]);  // decoding
  bench.body.park(ids[2]);
  bench.step();
  bench.body.cancel(ids[2]);  // parked
  bench.step();
  EXPECT_EQ(bench.engine.length(0), 0);
  EXPECT_EQ(bench.engine.length(1), 0);
  bench.body.scheduler().end(12345);  // unknown
}

TEST(SchedulerDeathTest, the_caller_must_answer_for_every_pass) {
  Bench bench({.width = 1, .context = 12});
  Scheduler& scheduler = bench.body.scheduler();
  scheduler.submit({.id = 7, .prompt = tokens(11)}, bench.now);
  (void)scheduler.plan(bench.now);
  EXPECT_DEATH((void)scheduler.plan(bench.now), "in_flight");
  scheduler.complete(ms(5));
  EXPECT_DEATH((void)scheduler.plan(bench.now), "pending");
  scheduler.append(7, 1);
  (void)scheduler.plan(bench.now);
  scheduler.complete(ms(5));
  EXPECT_DEATH(scheduler.append(7, 1), "context");
}

// A random history: arrivals, cancels, slow readers and every fault. Returns when all have ended.
void run_history(Random& random, const Limits& limits, bool faults, int period = 0) {
  TestEngine engine(limits.width, limits.context, limits.step_tokens_max, period);
  TestBody body(limits, engine);
  const auto any_of = [&](const auto& live) {
    auto it = live.begin();
    std::advance(it, random.below(live.size()));
    return it->first;
  };
  Instant now = kStart;
  int arrivals = 5 + static_cast<int>(random.below(30));
  for (int pass = 0; arrivals > 0 || !body.live().empty(); ++pass) {
    ASSERT_LT(pass, 20'000);
    if (arrivals > 0 && random.chance(0.3)) {
      --arrivals;
      const int size = 1 + static_cast<int>(random.below(limits.context - 1));
      const int answer = 1 + static_cast<int>(random.below(limits.context - size));
      std::vector<Token> prompt(random.chance(0.5) ? std::min(size, 9) : size);
      for (Token& token : prompt) token = static_cast<Token>(random.below(TestEngine::kVocabulary));
      body.submit(std::move(prompt), answer, now);
    }
    if (!body.live().empty()) {
      const SequenceId id = any_of(body.live());
      const bool parked = body.live().at(id).parked;
      if (random.chance(0.02)) {
        body.cancel(id);
      } else if (!parked && arrivals > 0 && random.chance(0.1)) {
        body.park(id);
      } else if (parked && random.chance(0.3)) {
        body.unpark(id);
      }
    }
    Fault fault = Fault::None;
    if (faults && arrivals > 0 && random.chance(0.1)) {
      constexpr Fault kFaults[] = {Fault::Aborted, Fault::Failed, Fault::Action, Fault::Action};
      fault = random.chance(0.01) ? Fault::NoSpace : kFaults[random.below(4)];
    }
    now += body.step(now, fault, random, cost).took;
    ASSERT_TRUE(body.breaches().empty()) << body.breaches().front() << " in pass " << pass;
  }
  TestEngine alone(1, limits.context, limits.step_tokens_max, period);
  for (const auto& [id, request] : body.finished()) {
    const int answered = static_cast<int>(request.answer.size());
    ASSERT_TRUE(request.cancelled || answered == request.answer_tokens);
    ASSERT_EQ(request.answer, answer_alone(alone, request.prompt, answered)) << "sequence " << id;
  }
}

Limits any_limits(Random& random) {
  Limits limits{.width = 1 + static_cast<int>(random.below(random.chance(0.2) ? 64 : 6)),
                .prefill_batch = 1 + static_cast<int>(random.below(5)),
                .context = 2 + static_cast<int>(random.below(120))};
  limits.step_tokens_max = limits.width + static_cast<int>(random.below(64));
  if (random.chance(0.5)) limits.window = limits.context + static_cast<int>(random.below(200));
  if (random.chance(0.3)) limits.step_target = ms(1 + random.uniform() * 100);
  return limits;
}

TEST(Scheduler, a_sequences_tokens_do_not_depend_on_company_chunks_parking_or_moves) {
  for_each_seed(150, [](Random& random) { run_history(random, any_limits(random), false); });
}

TEST(Scheduler, no_token_is_lost_or_repeated_by_faults) {
  for_each_seed(150, [](Random& random) { run_history(random, any_limits(random), true); });
}

TEST(Scheduler, drafts_change_no_token_whatever_happens) {
  for_each_seed(150, [](Random& random) {
    Limits limits = any_limits(random);
    limits.context += 60;
    if (limits.window > 0) limits.window += 60;
    limits.draft_tokens_max = 1 + static_cast<int>(random.below(16));
    run_history(random, limits, random.chance(0.5), 1 + static_cast<int>(random.below(7)));
  });
}

TEST(Scheduler, an_answer_that_repeats_itself_takes_fewer_passes) {
  const auto run = [](int draft_tokens_max) {
    Bench bench({.width = 1, .context = 600, .draft_tokens_max = draft_tokens_max}, 5);
    const SequenceId id = bench.body.submit(tokens(20), 500, bench.now);
    bench.run_until([&] { return bench.done(id); });
    const Scheduler::Drafts drafts = bench.body.scheduler().drafts();
    EXPECT_EQ(drafts.drafted > 0, draft_tokens_max > 0);
    EXPECT_LE(drafts.accepted, drafts.drafted);
    EXPECT_GE(drafts.accepted, drafts.drafted / 2) << drafts.drafted;
    return to_ms(bench.now - kStart);
  };
  EXPECT_LT(2 * run(16), run(0));
}

TEST(Scheduler, what_never_repeats_itself_is_not_slowed_down) {
  const auto run = [](int draft_tokens_max) {
    Bench bench({.width = 4, .context = 600, .draft_tokens_max = draft_tokens_max});
    for (int i = 0; i < 4; ++i) bench.body.submit(tokens(20 + i), 500, bench.now);
    bench.run_until([&] { return bench.body.live().empty(); });
    return to_ms(bench.now - kStart);
  };
  EXPECT_LT(run(16), 1.02 * run(0));
}

TEST(Scheduler, drafts_give_way_where_the_pass_costs_as_much_as_its_tokens) {
  // Each token of a pass costs the same, so a draft can only lose.
  Bench bench({.width = 8, .context = 600, .draft_tokens_max = 16}, 5);
  const auto by_token = [](const TestBody::Pass& pass) {
    return ms(0.1 + pass.decoding + pass.drafted + pass.prefill_tokens());
  };
  for (int i = 0; i < 8; ++i) bench.body.submit(tokens(20), 500, bench.now);
  std::int64_t passes = 0;
  for (; !bench.body.live().empty(); ++passes) {
    ASSERT_LT(passes, 10'000);
    bench.now += bench.body.step(bench.now, Fault::None, bench.random, by_token).took;
  }
  EXPECT_LT(bench.body.scheduler().drafts().drafted, passes / 5);
}

// Short prompts come faster than they can be computed, for as long as the long ones need.
TEST(Scheduler, nothing_starves_under_a_flood_of_short_prompts) {
  for_each_seed(20, [](Random& random) {
    Bench bench({.width = 2 + static_cast<int>(random.below(8)),
                 .prefill_batch = 1 + static_cast<int>(random.below(4)),
                 .context = 3000});
    std::vector<SequenceId> longs;
    for (int i = 0; i < 2; ++i) {
      const int size = 500 + static_cast<int>(random.below(1500));
      longs.push_back(bench.body.submit(tokens(size), 2, bench.now));
    }
    const auto flood = [&] {
      while (bench.body.scheduler().prefill_backlog() < 4000 && bench.body.live().size() < 40) {
        const int size = 20 + static_cast<int>(random.below(80));
        bench.body.submit(tokens(size), 1 + static_cast<int>(random.below(8)), bench.now);
      }
    };
    bench.run_until([&] {
      flood();
      return bench.done(longs[0]) && bench.done(longs[1]);
    });
    for (const SequenceId id : longs) {
      const double alone = static_cast<double>(bench.body.finished().at(id).prompt.size());
      EXPECT_LE(bench.first_token_ms(id), 12 * (alone + 2000));
    }
  });
}

// The oldest prompt always has a quarter of what passes leave to prefill (1.7 of 2.7 of them), so
// whoever comes is answered within 4 x 2.7 / 1.7 of the work that was there before it and its own,
// whatever comes after.
TEST(Scheduler, nothing_starves_under_random_arrivals) {
  for_each_seed(30, [](Random& random) {
    const int width = 1 + static_cast<int>(random.below(12));
    Bench bench(
        {.width = width, .prefill_batch = 1 + static_cast<int>(random.below(6)), .context = 3000});
    std::map<SequenceId, double> work_ms;
    double next_ms = 0;
    const double gap_ms = 5 + 400 * random.uniform();
    int left = 60;
    while (left > 0 || !bench.body.live().empty()) {
      while (left > 0 && to_ms(bench.now - kStart) >= next_ms) {
        const int size = random.chance(0.2) ? 400 + static_cast<int>(random.below(1500))
                                            : 5 + static_cast<int>(random.below(120));
        const int answer = 1 + static_cast<int>(random.below(20));
        const double before = static_cast<double>(bench.body.scheduler().prefill_backlog());
        work_ms[bench.body.submit(tokens(size), answer, bench.now)] = before + size;
        next_ms += gap_ms * 2 * random.uniform();
        --left;
      }
      if (bench.step().idle) bench.now += ms(1);
      ASSERT_TRUE(bench.body.breaches().empty()) << bench.body.breaches().front();
    }
    for (const auto& [id, work] : work_ms) {
      // Slots that answer must end before others have them: 20 tokens of at most a target each.
      const double slots_ms = 20 * 60.0 * (60.0 / width + 1);
      EXPECT_LE(bench.first_token_ms(id), 4 * 2.7 / 1.7 * (work + 500) + slots_ms) << id;
    }
  });
}

}  // namespace
}  // namespace flotilla::batch
