#pragma once

#include "base/random.h"
#include "batch/test_body.h"

namespace flotilla::sim {

// A computer in virtual time: what a pass costs, with noise, slow spells and hiccups. The scheduler
// knows none of these numbers.
class BatchMachine {
 public:
  explicit BatchMachine(Random& random);

  Duration run(const batch::TestBody::Pass& pass);
  // The same without noise and hiccups, at the present speed.
  double clean_ms(const batch::TestBody::Pass& pass) const;
  double decode_ms(int decoding) const;
  double token_ms(int pos) const;
  // The last pass hit a hiccup, or the speed changed within the last passes that decode and
  // prefill.
  bool disturbed() const { return disturbed_for_ > 0; }

 private:
  Random random_;
  double decode_base_ = 0;  // a pass with one sequence
  double decode_each_ = 0;  // more for each further one
  double token_flat_ = 0;
  double token_slope_ = 0;  // more per position
  double noise_ = 0;
  double hiccup_chance_ = 0;
  double change_chance_ = 0;
  double speed_ = 1;
  int disturbed_for_ = 0;
};

}  // namespace flotilla::sim
