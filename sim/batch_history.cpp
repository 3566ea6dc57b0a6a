#include "sim/batch_history.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "batch/test_body.h"
#include "engine/fake_engine.h"
#include "sim/batch_machine.h"

namespace flotilla::sim {
namespace {

using batch::Phase;
using batch::SequenceId;
using batch::TestBody;
using Fault = TestBody::Fault;

constexpr int kQuantum = 2;  // tokens that a pass may be beyond its target
constexpr double kTolerance =
    1.35;                          // of measured targets: noise, and costs that grow within a chunk
constexpr double kShareSlack = 2;  // of the oldest prompt's quarter
constexpr int kSettlePasses = 20;  // passes that learning may take in a wait
constexpr int kPassesMax = 200'000;

struct Chances {
  double slow_reader = 0;
  double cancel = 0;
  double abort = 0;
  double failure = 0;
  double action_failure = 0;
  bool narrow_window = false;

  bool faults() const { return abort + failure + action_failure > 0; }
};

class History {
 public:
  explicit History(std::uint64_t seed);
  BatchOutcome run();

 private:
  batch::Limits make_limits();
  void arrive();
  void disturb();
  Fault draw_fault();
  double target_ms(int decoding) const;
  void check_gap(const TestBody::Pass& pass);
  void check_order();
  void check_oldest(Duration took);
  void check_answers();
  void breach(const std::string& what) {
    outcome_.breaches.push_back(fmt::format("pass {}: {}", outcome_.passes, what));
  }

  Random random_;
  Chances chances_;
  batch::Limits limits_;
  engine::LoadedModel model_;
  BatchMachine machine_;
  TestBody body_;
  Instant now_ = Instant{} + std::chrono::hours(1);
  Instant next_arrival_ = now_;
  double arrival_gap_ms_ = 0;
  double long_chance_ = 0;
  int arrivals_left_ = 0;
  BatchOutcome outcome_;

  // The prompt that is the oldest of those that wait or prefill, and its wait as such.
  struct Oldest {
    SequenceId id = 0;
    double ms = 0;
    double bound_ms = 0;
    int passes = 0;
  } oldest_;
  std::map<SequenceId, Phase> phases_;
};

engine::LoadedModel make_model(const batch::Limits& limits, int width) {
  return engine::make_fake_model(
      {.width = width, .context = limits.context, .step_tokens_max = limits.step_tokens_max});
}

History::History(std::uint64_t seed)
    : random_(seed),
      limits_(make_limits()),
      model_(make_model(limits_, limits_.width)),
      machine_(random_),
      body_(limits_, *model_.engine) {
  arrivals_left_ = 10 + static_cast<int>(random_.below(60));
  long_chance_ = 0.3 * random_.uniform();
  const double short_ms = 60 * machine_.token_ms(0) + 30 * machine_.decode_ms(limits_.width);
  arrival_gap_ms_ = short_ms / limits_.width * (0.3 + 2 * random_.uniform());
  outcome_.setting = fmt::format(
      "width {} prefill_batch {} context {} window {} step_tokens_max {} target {:.0f} ms, decode "
      "{:.1f} ms, token {:.2f} ms; slow {} cancel {} abort {} fail {} action {}",
      limits_.width, limits_.prefill_batch, limits_.context, limits_.window,
      limits_.step_tokens_max, to_ms(limits_.step_target), machine_.decode_ms(1),
      machine_.token_ms(0), chances_.slow_reader, chances_.cancel, chances_.abort, chances_.failure,
      chances_.action_failure);
}

batch::Limits History::make_limits() {
  constexpr int kWidths[] = {1, 2, 4, 8, 8, 16, 64};
  batch::Limits limits{.width = kWidths[random_.below(7)],
                       .prefill_batch = 1 + static_cast<int>(random_.below(4)),
                       .context = 256 << random_.below(5)};
  limits.step_tokens_max = std::max(limits.width, 64 << random_.below(4));
  if (random_.chance(0.3)) limits.step_target = std::chrono::milliseconds(5 + random_.below(200));
  // A random subset of the disturbances: all of them at once hide each other.
  if (random_.chance(0.4)) chances_.slow_reader = 0.05;
  if (random_.chance(0.4)) chances_.cancel = 0.01;
  if (random_.chance(0.3)) chances_.abort = 0.03;
  if (random_.chance(0.2)) chances_.failure = 0.01;
  if (random_.chance(0.2)) chances_.action_failure = 0.1;
  chances_.narrow_window = random_.chance(0.2);
  if (chances_.narrow_window) {
    limits.window = limits.context + static_cast<int>(random_.below(limits.context));
  }
  return limits;
}

void History::arrive() {
  while (arrivals_left_ > 0 && next_arrival_ <= now_) {
    --arrivals_left_;
    const double gap_ms = -std::log(1 - random_.uniform()) * arrival_gap_ms_;
    next_arrival_ +=
        std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(gap_ms));
    const std::uint64_t longest = random_.chance(long_chance_) ? limits_.context - 2 : 120;
    const int size = 1 + static_cast<int>(random_.below(longest));
    std::vector<engine::Token> prompt(std::min(size, limits_.context - 1));
    for (engine::Token& token : prompt) token = static_cast<engine::Token>(random_.below(256));
    const int room = limits_.context - static_cast<int>(prompt.size());
    const int answer = 1 + static_cast<int>(random_.below(std::min(room, 100)));
    body_.submit(std::move(prompt), answer, now_);
    ++outcome_.requests;
  }
}

void History::disturb() {
  if (body_.live().empty()) return;
  auto it = body_.live().begin();
  std::advance(it, random_.below(body_.live().size()));
  const SequenceId id = it->first;
  if (it->second.parked) {
    if (arrivals_left_ == 0 || random_.chance(0.1)) body_.unpark(id);
    return;
  }
  if (arrivals_left_ == 0) return;
  if (random_.chance(chances_.cancel)) {
    body_.cancel(id);
  } else if (random_.chance(chances_.slow_reader)) {
    body_.park(id);
  }
}

Fault History::draw_fault() {
  if (arrivals_left_ == 0) return Fault::None;
  if (random_.chance(chances_.abort)) return Fault::Aborted;
  if (random_.chance(chances_.failure)) return Fault::Failed;
  if (random_.chance(chances_.action_failure)) return Fault::Action;
  return Fault::None;
}

// The design's, from the machine's true costs.
double History::target_ms(int decoding) const {
  const double decode = machine_.decode_ms(decoding);
  if (limits_.step_target > Duration{}) return std::max(to_ms(limits_.step_target), 1.25 * decode);
  return std::max(50.0, 2.7 * decode);
}

void History::check_gap(const TestBody::Pass& pass) {
  if (pass.decoding == 0 || pass.prefill.empty() || machine_.disturbed()) return;
  int deepest = 0;
  for (const auto& run : pass.prefill) deepest = std::max(deepest, run.first + run.second);
  // At least one token of progress, whatever it costs.
  const double floor_ms = machine_.decode_ms(pass.decoding) + machine_.token_ms(deepest);
  const double wanted_ms = std::max(target_ms(pass.decoding), floor_ms);
  const double took_ms = to_ms(pass.took);
  outcome_.worst_gap = std::max(outcome_.worst_gap, took_ms / wanted_ms);
  if (took_ms > kTolerance * wanted_ms + kQuantum * machine_.token_ms(deepest)) {
    breach(fmt::format("a pass of {} streams and {} prompt tokens took {:.0f} ms, target {:.0f} ms",
                       pass.decoding, pass.prefill_tokens(), took_ms, wanted_ms));
  }
}

// No prompt is begun before one that came earlier and is no longer.
void History::check_order() {
  std::vector<SequenceId> begun;
  for (const auto& [id, request] : body_.live()) {
    const Phase before = phases_.contains(id) ? phases_[id] : Phase::Waiting;
    const Phase phase = body_.scheduler().phase(id);
    if (before == Phase::Waiting && phase == Phase::Prefilling) begun.push_back(id);
    phases_[id] = phase;
  }
  if (chances_.faults() || chances_.narrow_window || chances_.slow_reader > 0) return;
  for (const SequenceId later : begun) {
    const std::size_t size = body_.live().at(later).prompt.size();
    for (const auto& [id, request] : body_.live()) {
      if (id >= later) break;
      if (phases_[id] != Phase::Waiting || request.prompt.size() > size) continue;
      breach(fmt::format("sequence {} with {} tokens begins before {} with {}", later, size, id,
                         request.prompt.size()));
    }
  }
}

// While a prompt is the oldest that prefills it has a quarter of what passes leave for prefill.
void History::check_oldest(Duration took) {
  if (chances_.faults() || chances_.narrow_window || chances_.slow_reader > 0) return;
  const auto& live = body_.live();
  const auto it = std::find_if(live.begin(), live.end(), [&](const auto& entry) {
    return phases_[entry.first] == Phase::Prefilling;
  });
  if (it == live.end()) {
    oldest_ = {};
    return;
  }
  if (oldest_.id != it->first) {
    oldest_ = {.id = it->first};
    const int size = static_cast<int>(it->second.prompt.size());
    // The target leaves 1.7 of 2.7 decode-only passes to prefill, a set one at least 0.25 of 1.25;
    // and the oldest has at least one token of four passes.
    const double left = limits_.step_target > Duration{} ? 0.25 / 1.25 : 1.7 / 2.7;
    const double target = target_ms(limits_.width);
    const double alone = size * machine_.token_ms(size);
    // Where tokens are all but free, passes are full before their time is up.
    const double full_passes = size / std::max(1.0, 1.0 * limits_.step_tokens_max - limits_.width);
    const double decode = machine_.decode_ms(limits_.width);
    oldest_.bound_ms = kShareSlack * 4 * (alone / left + full_passes * decode + target) +
                       kSettlePasses * (target + decode);
    oldest_.bound_ms += limits_.step_tokens_max * machine_.token_ms(limits_.context);
  }
  oldest_.ms += to_ms(took);
  if (machine_.disturbed()) oldest_.bound_ms += to_ms(took);
  outcome_.worst_wait = std::max(outcome_.worst_wait, oldest_.ms / oldest_.bound_ms);
  if (oldest_.ms > oldest_.bound_ms) {
    breach(fmt::format("sequence {} waits {:.0f} ms as the oldest, bound {:.0f} ms", oldest_.id,
                       oldest_.ms, oldest_.bound_ms));
  }
}

void History::check_answers() {
  const engine::LoadedModel alone = make_model(limits_, 1);
  for (const auto& [id, request] : body_.finished()) {
    const int answered = static_cast<int>(request.answer.size());
    if (!request.cancelled && answered != request.answer_tokens) {
      breach(fmt::format("sequence {} ended after {} tokens", id, answered));
    }
    if (request.answer != batch::answer_alone(*alone.engine, request.prompt, answered)) {
      breach(fmt::format("sequence {} answers otherwise than alone", id));
    }
  }
}

BatchOutcome History::run() {
  const Instant began = now_;
  while (outcome_.breaches.empty() && (arrivals_left_ > 0 || !body_.live().empty())) {
    arrive();
    disturb();
    const TestBody::Pass pass =
        body_.step(now_, draw_fault(), random_, [this](const auto& p) { return machine_.run(p); });
    if (pass.idle) {
      now_ = std::max(now_ + std::chrono::milliseconds(10), std::min(next_arrival_, now_));
    }
    now_ += pass.took;
    if (++outcome_.passes > kPassesMax) breach("does not end");
    for (const std::string& what : body_.breaches()) breach(what);
    if (!pass.lost) check_gap(pass);
    check_order();
    check_oldest(pass.took);
  }
  if (outcome_.breaches.empty()) check_answers();
  outcome_.virtual_s = to_s(now_ - began);
  return outcome_;
}

}  // namespace

BatchOutcome run_batch_history(std::uint64_t seed) { return History(seed).run(); }

}  // namespace flotilla::sim
