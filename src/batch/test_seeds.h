#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::batch {

// Runs `body(random)` for `count` seeds and names the failing one; FLOTILLA_SEED=n runs that one
// alone.
template <class Body>
void for_each_seed(int count, Body body) {
  const char* only = std::getenv("FLOTILLA_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const std::uint64_t last = only != nullptr ? first : static_cast<std::uint64_t>(count);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("FLOTILLA_SEED=" + std::to_string(seed));
    Random random(seed);
    body(random);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace flotilla::batch
