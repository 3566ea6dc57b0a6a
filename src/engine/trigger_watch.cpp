#include "engine/trigger_watch.h"

#include <algorithm>

namespace flotilla::engine {
namespace {

// The longest text that a pattern of llama-common's matches is a fraction of this.
constexpr std::size_t kPatternReach = 256;

std::size_t last_of(std::string_view text, const std::vector<std::string>& words) {
  std::size_t last = text.npos;
  for (const std::string& word : words) {
    const std::size_t at = text.rfind(word);
    if (at != text.npos) last = last == text.npos ? at : std::max(last, at);
  }
  return last;
}

}  // namespace

TriggerWatch::TriggerWatch(const GrammarSpec& spec)
    : words_(spec.trigger_words),
      reasoning_start_(spec.reasoning_start),
      reasoning_ends_(spec.reasoning_ends) {
  for (const std::string& pattern : spec.trigger_patterns) patterns_.emplace_back(pattern);
  if (!patterns_.empty()) keep_ = kPatternReach;
  const auto keep = [this](const std::string& word) { keep_ = std::max(keep_, word.size()); };
  std::ranges::for_each(words_, keep);
  std::ranges::for_each(reasoning_ends_, keep);
  keep(reasoning_start_);
  // The template itself may have begun to think.
  if (!reasoning_start_.empty()) {
    const std::size_t start = spec.begun.rfind(reasoning_start_);
    const std::size_t end = last_of(spec.begun, reasoning_ends_);
    reasoning_ = start != std::string::npos && (end == std::string::npos || end < start);
  }
}

TriggerWatch::Found TriggerWatch::find_word(const std::vector<std::string>& words) const {
  Found first;
  for (const std::string& word : words) {
    const std::size_t at = recent_.find(word, from_);
    if (at < first.at) first = {at, word.size()};
  }
  return first;
}

TriggerWatch::Found TriggerWatch::find_trigger() const {
  Found first = find_word(words_);
  const bool cut = recent_at_ > 0 || from_ > 0;
  const auto flags =
      cut ? std::regex_constants::match_not_bol : std::regex_constants::match_default;
  for (const std::regex& pattern : patterns_) {
    std::smatch match;
    if (!std::regex_search(recent_.begin() + static_cast<std::ptrdiff_t>(from_), recent_.end(),
                           match, pattern, flags)) {
      continue;
    }
    std::size_t group = 0;
    for (std::size_t i = 1; i < match.size() && group == 0; ++i) {
      if (match[i].length() > 0) group = i;
    }
    const auto at = static_cast<std::size_t>(match[group].first - recent_.begin());
    if (at < first.at) first = {at, static_cast<std::size_t>(match[group].length())};
  }
  return first;
}

std::optional<std::size_t> TriggerWatch::add(std::string_view text) {
  recent_ += text;
  for (;;) {
    if (reasoning_) {
      const Found end = find_word(reasoning_ends_);
      if (end.at == std::string::npos) break;
      from_ = end.at + end.size;
      reasoning_ = false;
      continue;
    }
    const Found trigger = find_trigger();
    Found start;
    if (!reasoning_start_.empty()) start = {recent_.find(reasoning_start_, from_), 0};
    if (trigger.at != std::string::npos && trigger.at <= start.at) return recent_at_ + trigger.at;
    if (start.at == std::string::npos) break;
    from_ = start.at + reasoning_start_.size();
    reasoning_ = true;
  }
  const std::size_t passed = recent_.size() > keep_ ? recent_.size() - keep_ : 0;
  recent_.erase(0, passed);
  recent_at_ += passed;
  from_ = from_ > passed ? from_ - passed : 0;
  return std::nullopt;
}

std::string_view TriggerWatch::since(std::size_t at) const {
  if (at <= recent_at_) return recent_;
  return std::string_view(recent_).substr(std::min(at - recent_at_, recent_.size()));
}

}  // namespace flotilla::engine
