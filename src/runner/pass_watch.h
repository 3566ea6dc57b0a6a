#pragma once

#include <array>
#include <atomic>
#include <span>

#include "batch/scheduler.h"

namespace flotilla::runner {

// Who waits for the pass under way. The scheduler thread begins and ends passes, any thread may
// tell that somebody waits no more: a pass that nobody waits for is worth ending early. Late news
// about a pass that is over is not noticed, or counts for the next one: whoever acts on leave()
// must bear a pass ended for nothing.
class PassWatch {
 public:
  void begin(std::span<const batch::SequenceId> ids) {
    waiting_ = static_cast<int>(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids_[i] = ids[i];
  }
  void end() {
    for (auto& id : ids_) id = kNobody;
    waiting_ = 0;
  }
  // true: `id` was the last that waited for the pass.
  bool leave(batch::SequenceId id) {
    for (auto& held : ids_) {
      batch::SequenceId expected = id;
      if (held.compare_exchange_strong(expected, kNobody)) return waiting_.fetch_sub(1) == 1;
    }
    return false;
  }

 private:
  static constexpr batch::SequenceId kNobody = 0;  // ids begin at 1

  std::array<std::atomic<batch::SequenceId>, 64> ids_{};  // a pass has at most 64 chunks
  std::atomic<int> waiting_{0};
};

}  // namespace flotilla::runner
