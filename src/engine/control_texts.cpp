#include "engine/control_texts.h"

#include <algorithm>

namespace flotilla::engine {

ControlTexts::ControlTexts(std::vector<std::string> forms) : forms_(std::move(forms)) {
  std::erase(forms_, std::string());
  std::ranges::sort(forms_);
  for (const std::string& form : forms_) {
    if (!first_bytes_.ends_with(form[0])) first_bytes_.push_back(form[0]);
  }
}

// The length of the longest form that `text` begins with; 0: none.
std::size_t ControlTexts::match(std::string_view text) const {
  // Forms that begin with the first `depth` bytes of the text are neighbours; the range shrinks by
  // each byte.
  auto low = forms_.begin();
  auto high = forms_.end();
  std::size_t longest = 0;
  for (std::size_t depth = 0; depth < text.size() && low != high; ++depth) {
    const auto byte = [depth](const std::string& form) {
      return depth < form.size() ? static_cast<unsigned char>(form[depth]) : -1;
    };
    const int wanted = static_cast<unsigned char>(text[depth]);
    low = std::partition_point(low, high, [&](const auto& form) { return byte(form) < wanted; });
    high = std::partition_point(low, high, [&](const auto& form) { return byte(form) == wanted; });
    if (low != high && low->size() == depth + 1) longest = depth + 1;
  }
  return longest;
}

// The next form's position and length; npos: none.
std::size_t ControlTexts::find(std::string_view text, std::size_t from, std::size_t& length) const {
  for (;;) {
    from = text.find_first_of(first_bytes_, from);
    if (from == text.npos) return from;
    length = match(text.substr(from));
    if (length > 0) return from;
    ++from;
  }
}

std::vector<TextPart> ControlTexts::split(std::string_view text) const {
  std::vector<TextPart> parts;
  std::size_t done = 0;
  std::size_t length = 0;
  for (;;) {
    const std::size_t at = find(text, done, length);
    const std::string_view typed = text.substr(done, at == text.npos ? text.npos : at - done);
    if (!typed.empty()) parts.push_back({typed, false});
    if (at == text.npos) return parts;
    parts.push_back({text.substr(at, length), true});
    done = at + length;
  }
}

bool ControlTexts::occurs_in(std::string_view text) const {
  std::size_t length = 0;
  return find(text, 0, length) != text.npos;
}

}  // namespace flotilla::engine
