#pragma once

#include <optional>
#include <vector>

#include "batch/sequence.h"

namespace flotilla::batch {

// Which sequence holds which slot. The engine computes a pass in one piece only when its slots have
// no holes, so newcomers take the lowest free slot and next_move() closes what is left open.
class Slots {
 public:
  explicit Slots(int width) : holders_(static_cast<std::size_t>(width)) {}

  bool full() const { return used_ == static_cast<int>(holders_.size()); }
  int used() const { return used_; }
  int width() const { return static_cast<int>(holders_.size()); }
  std::vector<Sequence*> holders() const;  // by slot
  Sequence* at(int slot) const { return holders_[static_cast<std::size_t>(slot)]; }

  // Into the lowest free slot; there must be one.
  void enter(Sequence& sequence);
  void leave(Sequence& sequence);
  // Moves the highest sequence into the lowest hole; nothing when slots are dense.
  std::optional<MoveSlot> next_move();

 private:
  int lowest_free() const;

  std::vector<Sequence*> holders_;
  int used_ = 0;
};

}  // namespace flotilla::batch
