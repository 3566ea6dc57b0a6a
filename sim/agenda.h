#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace flotilla::sim {

// Virtual time: what happens when, in order of time and then of planning. One thread.
class Agenda {
 public:
  using Deed = std::function<void()>;

  Instant now() const { return now_; }
  void at(Instant when, Deed deed) {
    heap_.push_back({std::max(when, now_), ++planned_, std::move(deed)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void in(Duration delay, Deed deed) { at(now_ + delay, std::move(deed)); }
  // The next deed, unless it lies beyond `end`. false: none is left before it.
  bool step(Instant end) {
    if (heap_.empty() || heap_.front().when > end) return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = std::max(now_, entry.when);
    ++done_;
    entry.deed();
    return true;
  }
  // The process stood still: everything that was due meanwhile happens late and at once.
  void skip(Duration time) { now_ += time; }
  std::uint64_t done() const { return done_; }

 private:
  struct Entry {
    Instant when;
    std::uint64_t order;
    Deed deed;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }

  std::vector<Entry> heap_;
  Instant now_ = Instant{} + std::chrono::hours(1);
  std::uint64_t planned_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace flotilla::sim
