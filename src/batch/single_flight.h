#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch/prefix_index.h"
#include "batch/scheduler.h"

namespace flotilla::batch {

// A sequence on its way to the scheduler.
struct Newcomer {
  SequenceId id = 0;
  std::string group = {};  // prefixes are shared within one only
  std::vector<engine::Token> tokens = {};
  int answer_reserve = 512;
  bool parked = false;
  bool wants_vector = false;
};

// One computation of a beginning that many ask for at once: a newcomer that shares much with a
// sequence under way waits until that one has computed the shared part, and takes its cells. One
// thread owns it.
class SingleFlight {
 public:
  static constexpr int kTokensMin = 128;  // shared beyond what is in store; less is computed sooner
  // Copying a cell costs about a fortieth of computing it, and all of the leader's are copied.
  static constexpr int kLeaderShare = 16;

  // true: `newcomer` was taken, it follows another. `reusable`: tokens of it that are in store.
  bool follow(Newcomer& newcomer, int reusable);
  // It computes by itself from now on, and may be followed.
  void lead(const Newcomer& newcomer);
  // A leader's or a follower's end.
  void end(SequenceId id);
  // Marks a follower; others are not its business.
  void park(SequenceId id, bool parked);

  // Followers whose wait is over, in the order they came. `held` tells how many cells a leader has;
  // none: it is not computing (it ended, or its reader is slow), so nobody waits for it.
  struct Ready {
    Newcomer newcomer;
    SequenceId leader = 0;  // holds the shared part; 0: nobody does
    int shared = 0;         // tokens
  };
  std::vector<Ready> take_ready(const std::function<std::optional<int>(SequenceId)>& held);

  int following() const { return static_cast<int>(followers_.size()); }

 private:
  struct Follower {
    Newcomer newcomer;
    SequenceId leader = 0;
    int shared = 0;
  };
  using Leaders = PrefixIndex<std::vector<SequenceId>>;  // by their prompts
  Leaders leaders_;
  std::unordered_map<SequenceId, Leaders::iterator> entries_;
  std::vector<Follower> followers_;
};

}  // namespace flotilla::batch
