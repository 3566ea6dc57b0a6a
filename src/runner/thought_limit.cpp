#include "runner/thought_limit.h"

#include <string_view>
#include <utility>

namespace flotilla::runner {

std::optional<engine::Token> ThoughtLimit::forced() const {
  if (over_ || !thinking_ || count_ < budget_.tokens) return std::nullopt;
  return budget_.ends[ended_];
}

void ThoughtLimit::add(engine::Token token, std::string_view piece) {
  if (over_) return;
  const bool was_forced = forced() == token;
  if (thinking_) ++count_;
  ended_ = was_forced ? ended_ + 1 : 0;
  if (ended_ == budget_.ends.size()) {
    over_ = true;
    return;
  }
  recent_ += piece;
  const std::string& mark = thinking_ ? budget_.end : budget_.start;
  if (recent_.find(mark) != recent_.npos) {
    over_ = std::exchange(thinking_, !thinking_);
    recent_.clear();
  } else if (!thinking_ && recent_.size() > 4 * budget_.start.size() + 16) {
    over_ = true;  // an answer that thinks begins with it
  } else if (thinking_ && recent_.size() > 2 * mark.size()) {
    recent_.erase(0, recent_.size() - mark.size());
  }
}

}  // namespace flotilla::runner
