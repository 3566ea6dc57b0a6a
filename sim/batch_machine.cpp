#include "sim/batch_machine.h"

namespace flotilla::sim {
namespace {

// Passes of both kinds of work, until the scheduler has to have learned a new speed: it measures
// the decode cost of each number of streams anew after 32 of them.
constexpr int kSettlePasses = 100;

}  // namespace

BatchMachine::BatchMachine(Random& random) : random_(random.next()) {
  decode_base_ = 2 + random_.uniform() * 80;
  decode_each_ = decode_base_ * random_.uniform() * 0.1;
  // From a device for which company is free to one where a token costs as much as a pass.
  token_flat_ = decode_base_ * (random_.chance(0.3) ? 0.001 : 0.01 + random_.uniform());
  token_slope_ = token_flat_ * random_.uniform() / 2000;
  noise_ = random_.chance(0.5) ? 0.1 * random_.uniform() : 0;
  hiccup_chance_ = random_.chance(0.3) ? 0.005 : 0;
  change_chance_ = random_.chance(0.3) ? 0.001 : 0;
}

double BatchMachine::decode_ms(int decoding) const {
  return decoding == 0 ? 0 : speed_ * (decode_base_ + decode_each_ * (decoding - 1));
}

double BatchMachine::token_ms(int pos) const { return speed_ * (token_flat_ + token_slope_ * pos); }

double BatchMachine::clean_ms(const batch::TestBody::Pass& pass) const {
  double ms = decode_ms(pass.decoding);
  for (const auto& [pos, tokens] : pass.prefill) ms += tokens * token_ms(pos + tokens / 2);
  return ms;
}

Duration BatchMachine::run(const batch::TestBody::Pass& pass) {
  const bool mixed = pass.decoding > 0 && !pass.prefill.empty();
  if (mixed && disturbed_for_ > 0) --disturbed_for_;
  if (random_.chance(change_chance_)) {
    speed_ = 0.5 + 2 * random_.uniform();
    disturbed_for_ = kSettlePasses;
  }
  double ms = clean_ms(pass) * (1 + noise_ * (2 * random_.uniform() - 1));
  if (random_.chance(hiccup_chance_)) {
    ms += random_.uniform() * 1000;
    disturbed_for_ = std::max(disturbed_for_, 1);
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

}  // namespace flotilla::sim
