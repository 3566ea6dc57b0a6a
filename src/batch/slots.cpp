#include "batch/slots.h"

#include <algorithm>

#include "base/check.h"

namespace flotilla::batch {

int Slots::lowest_free() const {
  return static_cast<int>(std::find(holders_.begin(), holders_.end(), nullptr) - holders_.begin());
}

std::vector<Sequence*> Slots::holders() const {
  std::vector<Sequence*> all = holders_;
  std::erase(all, nullptr);
  return all;
}

void Slots::enter(Sequence& sequence) {
  CHECK(!full() && sequence.slot == kNoSlot);
  sequence.slot = lowest_free();
  holders_[static_cast<std::size_t>(sequence.slot)] = &sequence;
  ++used_;
}

void Slots::leave(Sequence& sequence) {
  CHECK(sequence.slot != kNoSlot && at(sequence.slot) == &sequence);
  holders_[static_cast<std::size_t>(sequence.slot)] = nullptr;
  sequence.slot = kNoSlot;
  --used_;
}

std::optional<MoveSlot> Slots::next_move() {
  const int to = lowest_free();
  if (to >= used_) return std::nullopt;
  int from = width() - 1;
  while (at(from) == nullptr) --from;
  Sequence* mover = at(from);
  std::swap(holders_[static_cast<std::size_t>(from)], holders_[static_cast<std::size_t>(to)]);
  mover->slot = to;
  return MoveSlot{.id = mover->id, .from = from, .to = to};
}

}  // namespace flotilla::batch
