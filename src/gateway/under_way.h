#pragma once

#include <string>
#include <utility>

#include "gateway/control.h"

namespace flotilla::gateway {

// Marks that something is being done to a pool or cluster, for as long as it lives. A later mark of
// the same key (a forced unload during a load) outlives the earlier one's end.
class Control::UnderWay {
 public:
  UnderWay(std::map<std::string, Work>& marks, std::string key, Work work)
      : marks_(marks), key_(std::move(key)), what_(work.what) {
    marks_[key_] = std::move(work);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    const auto found = marks_.find(key_);
    if (found != marks_.end() && found->second.what == what_) marks_.erase(found);
  }

 private:
  std::map<std::string, Work>& marks_;
  std::string key_;
  std::string what_;
};

}  // namespace flotilla::gateway
