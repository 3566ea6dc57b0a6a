#include "batch/ngram_draft.h"

#include <algorithm>
#include <bit>

namespace flotilla::batch {
namespace {

// Tokens that must be the same before a place is taken for one like it.
constexpr std::size_t kLength = 3;
constexpr std::size_t kPlacesMin = 1U << 10;
constexpr std::size_t kPlacesMax = 1U << 17;
// Of one guess in the rate: what was, is forgotten in a dozen.
constexpr double kNewest = 1.0 / 8;

std::uint64_t hash(std::span<const engine::Token> tokens) {
  std::uint64_t out = 0;
  for (const engine::Token token : tokens)
    out = (out ^ static_cast<std::uint32_t>(token)) * 0x9E3779B97F4A7C15ULL;
  return out >> 32;
}

}  // namespace

NgramDraft::NgramDraft(std::span<const engine::Token> prompt, std::size_t tokens_expected)
    : places_(std::clamp(std::bit_ceil(2 * tokens_expected), kPlacesMin, kPlacesMax)) {
  for (std::size_t size = kLength; size <= prompt.size(); ++size) look_up(prompt.first(size));
}

void NgramDraft::add(std::span<const engine::Token> tokens) {
  bool right = false;
  if (has_guess()) {
    right = tokens[next_] == tokens.back();
    rate_ += kNewest * ((right ? 1.0 : 0.0) - rate_);
  }
  // A place that has been right for longer than kLength tokens is more like this one than the last
  // that shares kLength of them.
  const std::size_t followed = right ? next_ + 1 : 0;
  if (tokens.size() >= kLength) look_up(tokens);
  if (right) next_ = followed;
}

void NgramDraft::look_up(std::span<const engine::Token> tokens) {
  const auto newest = tokens.last(kLength);
  std::uint32_t& place = places_[hash(newest) & (places_.size() - 1)];
  // Others may share the place in the table.
  const bool same =
      place != 0 && std::ranges::equal(tokens.subspan(place - kLength, kLength), newest);
  next_ = same ? place : 0;
  place = static_cast<std::uint32_t>(tokens.size());
}

std::vector<engine::Token> NgramDraft::guess(std::span<const engine::Token> tokens,
                                             int most) const {
  std::vector<engine::Token> out;
  if (!has_guess()) return out;
  out.reserve(static_cast<std::size_t>(most));
  for (std::size_t at = next_; out.size() < static_cast<std::size_t>(most); ++at)
    out.push_back(at < tokens.size() ? tokens[at] : out[at - tokens.size()]);
  return out;
}

}  // namespace flotilla::batch
