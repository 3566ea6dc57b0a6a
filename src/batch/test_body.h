#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "batch/scheduler.h"

namespace flotilla::batch {

// The scheduler's body as tests and the simulator have it: does what plans say on an engine, takes
// the likeliest token, injects faults, and checks what must hold of every plan. What did not is in
// breaches().
class TestBody {
 public:
  enum class Fault { None, Aborted, Failed, NoSpace, Action };

  struct Request {
    std::vector<engine::Token> prompt{};
    std::vector<engine::Token> answer{};
    int answer_tokens = 0;  // ends after as many
    bool parked = false;
    bool cancelled = false;
    Instant arrived{};
    Instant first_token{};
    Instant last_token{};
  };

  struct Pass {
    bool idle = true;
    bool lost = false;  // a fault made it count for nothing
    int decoding = 0;
    int drafted = 0;
    std::vector<std::pair<int, int>> prefill;  // position, tokens
    Duration took{};

    int prefill_tokens() const {
      int tokens = 0;
      for (const auto& run : prefill) tokens += run.second;
      return tokens;
    }
  };
  using Cost = std::function<Duration(const Pass&)>;

  TestBody(const Limits& limits, engine::Engine& engine)
      : limits_(limits), engine_(engine), scheduler_(limits) {}

  SequenceId submit(std::vector<engine::Token> prompt, int answer_tokens, Instant now,
                    std::uint64_t request = 0) {
    const SequenceId id = ++last_id_;
    scheduler_.submit({.id = id,
                       .prompt = prompt,
                       .answer_reserve = std::min(answer_tokens, 512),
                       .request = request},
                      now);
    live_[id] = {.prompt = std::move(prompt), .answer_tokens = answer_tokens, .arrived = now};
    return id;
  }
  void cancel(SequenceId id) {
    live_.at(id).cancelled = true;
    finish(id);
  }
  void park(SequenceId id) {
    live_.at(id).parked = true;
    scheduler_.park(id);
  }
  void unpark(SequenceId id) {
    live_.at(id).parked = false;
    scheduler_.unpark(id);
  }

  // One pass that begins at `now`.
  Pass step(Instant now, Fault fault, Random& random, const Cost& cost) {
    const StepPlan plan = scheduler_.plan(now);
    const bool acted = act(plan, fault, random);
    Pass pass;
    if (acted) check_plan(plan);
    for (const engine::Chunk& chunk : plan.chunks) {
      const bool decodes = is_answer(plan, chunk);
      pass.decoding += decodes ? 1 : 0;
      pass.drafted += chunk.drafted;
      if (!decodes) pass.prefill.emplace_back(chunk.pos, static_cast<int>(chunk.tokens.size()));
    }
    pass.idle = plan.empty();
    if (!plan.empty()) pass.took = cost(pass);
    pass.lost = !acted;
    if (!acted) {
      roll_back(plan);
    } else if (!plan.empty()) {
      pass.lost = compute(plan, fault, random);
      if (!pass.lost) {
        scheduler_.complete(pass.took);
        sample(plan, now + pass.took);
      }
    }
    return pass;
  }

  const std::map<SequenceId, Request>& live() const { return live_; }
  const std::map<SequenceId, Request>& finished() const { return finished_; }
  const std::vector<std::string>& breaches() const { return breaches_; }
  Scheduler& scheduler() { return scheduler_; }

 private:
  // Does the plan's actions; false when one failed.
  bool act(const StepPlan& plan, Fault fault, Random& random) {
    const std::size_t failing = fault == Fault::Action && !plan.actions.empty()
                                    ? random.below(plan.actions.size())
                                    : plan.actions.size();
    bool all = true;
    for (std::size_t i = 0; i < plan.actions.size(); ++i) {
      const bool fails = i == failing;
      if (const auto* clear = std::get_if<ClearSlot>(&plan.actions[i])) {
        engine_.truncate(clear->slot, 0);
      } else if (const auto* move = std::get_if<MoveSlot>(&plan.actions[i])) {
        all = all && !fails;
        if (!fails && engine_.move(move->from, move->to)) continue;
        engine_.truncate(move->from, 0);
        check_kept(scheduler_.roll_back(move->id, 0), 0);
      } else if (const auto* save = std::get_if<SaveSlot>(&plan.actions[i])) {
        if (fails) {
          scheduler_.lost(save->id);
        } else {
          saved_[save->id] = *engine_.save(save->slot);
        }
        engine_.truncate(save->slot, 0);
      } else if (const auto* restore = std::get_if<RestoreSlot>(&plan.actions[i])) {
        all = all && !fails;
        const std::vector<std::byte> state = std::move(saved_.at(restore->id));
        saved_.erase(restore->id);
        if (fails) {
          check_kept(scheduler_.roll_back(restore->id, 0), 0);
        } else {
          (void)engine_.restore(restore->slot, state);
        }
      }
    }
    return all;
  }

  // The pass, or the fault in its place; true when it counts for nothing.
  bool compute(const StepPlan& plan, Fault fault, Random& random) {
    switch (fault) {
      case Fault::None:
      case Fault::Action: (void)engine_.decode(plan.chunks); return false;
      case Fault::NoSpace: {
        const SequenceId only = plan.ids.front();
        if (!scheduler_.no_space()) cancel(only);
        return true;
      }
      case Fault::Failed:
        for (const engine::Chunk& chunk : plan.chunks) engine_.truncate(chunk.slot, 0);
        break;
      case Fault::Aborted: {
        std::vector<engine::Chunk> done;  // each slot stopped somewhere
        for (engine::Chunk chunk : plan.chunks) {
          chunk.tokens = chunk.tokens.first(random.below(chunk.tokens.size() + 1));
          chunk.drafted = 0;
          if (!chunk.tokens.empty()) done.push_back(chunk);
        }
        if (!done.empty()) (void)engine_.decode(done);
        break;
      }
    }
    roll_back(plan);
    return true;
  }

  void roll_back(const StepPlan& plan) {
    for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
      const int slot = plan.chunks[i].slot;
      const int held = engine_.length(slot);
      const int keep = scheduler_.roll_back(plan.ids[i], held);
      check_kept(keep, held);
      engine_.truncate(slot, keep);
    }
  }
  void check_kept(int keep, int held) {
    if (keep > held || keep < held - 1 - limits_.draft_tokens_max)
      breach("roll_back keeps more than there is, or less than it could");
  }

  bool is_answer(const StepPlan& plan, const engine::Chunk& chunk) const {
    const auto i = static_cast<std::size_t>(&chunk - plan.chunks.data());
    const Request& request = live_.at(plan.ids[i]);
    const auto drafted = static_cast<std::size_t>(chunk.drafted);
    return chunk.tokens.size() == 1 + drafted && chunk.wants_logits && !request.answer.empty();
  }

  void check_plan(const StepPlan& plan) {
    int tokens = 0;
    int drafted = 0;
    int previous = -1;
    for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
      const engine::Chunk& chunk = plan.chunks[i];
      const Request& request = live_.at(plan.ids[i]);
      std::vector<engine::Token> all = request.prompt;
      all.insert(all.end(), request.answer.begin(), request.answer.end());
      const auto sure = chunk.tokens.first(chunk.tokens.size() - chunk.drafted);
      const std::size_t end = chunk.pos + sure.size();
      drafted += chunk.drafted;
      if (chunk.slot <= previous) breach("chunks are not sorted by slot");
      if (chunk.pos != engine_.length(chunk.slot))
        breach("a chunk does not begin at its cells' end");
      if (sure.empty() || end > all.size() ||
          !std::equal(sure.begin(), sure.end(), all.begin() + chunk.pos)) {
        breach("a chunk holds other tokens than its sequence");
      }
      if (chunk.wants_logits != (end == all.size()))
        breach("logits are not those of the last token");
      if (chunk.drafted > 0 && !is_answer(plan, chunk)) breach("a prompt has a draft");
      if (static_cast<int>(end) + chunk.drafted > limits_.context)
        breach("a draft is longer than the context");
      if (request.parked) breach("a parked sequence is in the pass");
      previous = chunk.slot;
      tokens += static_cast<int>(chunk.tokens.size());
    }
    if (tokens > limits_.step_tokens_max) breach("a pass is larger than step_tokens_max");
    if (drafted > limits_.draft_tokens_max) breach("a pass has more drafts than it may");
    check_everyone(plan, previous);
  }

  void check_everyone(const StepPlan& plan, int highest_slot) {
    bool could_run = false;
    int saved_parked = 0;
    for (const auto& [id, request] : live_) {
      could_run = could_run || !request.parked;
      saved_parked += request.parked && saved_.contains(id) ? 1 : 0;
      const bool planned = std::find(plan.ids.begin(), plan.ids.end(), id) != plan.ids.end();
      if (scheduler_.phase(id) == Phase::Decoding && !planned)
        breach("a decoding sequence has no row");
    }
    if (could_run && plan.empty()) breach("somebody could run and nobody does");
    const Load load = scheduler_.load();
    const int slots = load.prefilling + load.decoding + load.parked - saved_parked;
    if (highest_slot >= std::min(slots, limits_.width)) breach("slots are not dense");
  }

  void sample(const StepPlan& plan, Instant now) {
    for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
      if (!plan.chunks[i].wants_logits) continue;
      Request& request = live_.at(plan.ids[i]);
      if (request.answer.empty()) request.first_token = now;
      request.last_token = now;
      const bool over = take_tokens(plan, i, request);
      const auto held = scheduler_.held(plan.ids[i]);
      const int slot = plan.chunks[i].slot;
      if (!held || held->slot != slot ||
          static_cast<int>(held->tokens.size()) > engine_.length(slot)) {
        breach("more cells are held than computed");
        continue;
      }
      engine_.truncate(slot, static_cast<int>(held->tokens.size()));
      if (over) finish(plan.ids[i]);
    }
  }

  // The likeliest token, and one for each of its draft that was right; true: the answer is over.
  bool take_tokens(const StepPlan& plan, std::size_t i, Request& request) {
    for (std::size_t right = 0;; ++right) {
      const std::span<const float> logits = engine_.logits(i, right);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      request.answer.push_back(static_cast<engine::Token>(best));
      if (static_cast<int>(request.answer.size()) == request.answer_tokens) return true;
      if (!scheduler_.append(plan.ids[i], request.answer.back())) return false;
    }
  }

  void finish(SequenceId id) {
    scheduler_.end(id);
    saved_.erase(id);
    finished_.insert(live_.extract(id));
  }
  void breach(std::string what) { breaches_.push_back(std::move(what)); }

  Limits limits_;
  engine::Engine& engine_;
  Scheduler scheduler_;
  SequenceId last_id_ = 0;
  std::map<SequenceId, Request> live_;
  std::map<SequenceId, Request> finished_;
  std::map<SequenceId, std::vector<std::byte>> saved_;
  std::vector<std::string> breaches_;
};

// What an engine answers in slot 0, alone: the whole prompt at once, then token by token.
inline std::vector<engine::Token> answer_alone(engine::Engine& engine,
                                               std::vector<engine::Token> tokens,
                                               int answer_tokens) {
  std::vector<engine::Token> answer;
  engine.truncate(0, 0);
  while (static_cast<int>(answer.size()) < answer_tokens) {
    const int pos = engine.length(0);
    const std::size_t most = engine.info().step_tokens_max;
    const auto rest = std::span<const engine::Token>(tokens).subspan(pos);
    const engine::Chunk chunk{.slot = 0,
                              .pos = pos,
                              .tokens = rest.first(std::min(rest.size(), most)),
                              .wants_logits = rest.size() <= most};
    (void)engine.decode(std::span(&chunk, 1));
    if (!chunk.wants_logits) continue;
    const std::span<const float> logits = engine.logits(0);
    answer.push_back(static_cast<engine::Token>(std::max_element(logits.begin(), logits.end()) -
                                                logits.begin()));
    tokens.push_back(answer.back());
  }
  return answer;
}

}  // namespace flotilla::batch
