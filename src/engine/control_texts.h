#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flotilla::engine {

// A stretch of a text: typed words, or the written form of a control token.
struct TextPart {
  std::string_view text;
  bool control = false;
};

// The written forms of a vocabulary's control tokens ("<|im_end|>"), to be found in what users
// type. Immutable; any thread.
class ControlTexts {
 public:
  explicit ControlTexts(std::vector<std::string> forms);

  // Cuts `text` at every form in it: leftmost, then longest, so that no form is left in a typed
  // stretch. At most (longest form) steps a byte.
  std::vector<TextPart> split(std::string_view text) const;
  bool occurs_in(std::string_view text) const;

 private:
  std::size_t match(std::string_view text) const;
  std::size_t find(std::string_view text, std::size_t from, std::size_t& length) const;

  std::vector<std::string> forms_;  // sorted
  std::string first_bytes_;         // of the forms, each once
};

}  // namespace flotilla::engine
