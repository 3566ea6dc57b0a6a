#include "batch/whole_tokens.h"

namespace flotilla::batch {

void WholeTokens::add(std::string_view bytes) {
  std::string text;
  utf8_.add(bytes, text);
  text_ += text.size();
  ends_.push_back(utf8_.inside() ? kInside : text_);
}

WholeTokens::Part WholeTokens::take(std::size_t ready) {
  Part part;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] == kInside) continue;
    if (ends_[i] > taken_ + ready) break;
    part = {.tokens = i + 1, .bytes = ends_[i] - taken_};
  }
  if (part.bytes == 0) return {};
  ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(part.tokens));
  taken_ += part.bytes;
  return part;
}

std::size_t WholeTokens::begun(std::size_t ready) const {
  std::size_t begin = taken_;
  std::size_t tokens = 0;
  for (; tokens < ends_.size() && begin < taken_ + ready; ++tokens) {
    if (ends_[tokens] != kInside) begin = ends_[tokens];
  }
  return tokens;
}

}  // namespace flotilla::batch
