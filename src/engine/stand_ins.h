#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/control_texts.h"

namespace flotilla::engine {

// Stand-ins for the control texts that users typed: random words that no template knows and nobody
// can guess, put back as plain text when the rendered prompt is tokenised. One prompt's.
class StandIns {
 public:
  explicit StandIns(const ControlTexts& controls) : controls_(controls) {}

  std::string hide(std::string_view text);
  // JSON can spell a control text with escapes, which the template engine undoes.
  std::string hide_json(const std::string& json);

  // The prompt in stretches: the template's (with what was typed in it), and hidden texts.
  std::vector<TextPart> reveal(std::string_view prompt) const;
  bool any() const { return !typed_.empty(); }

 private:
  const ControlTexts& controls_;
  std::string word_;
  std::vector<std::string> typed_;
};

}  // namespace flotilla::engine
