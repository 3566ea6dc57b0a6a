#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batch/utf8_text.h"

namespace flotilla::batch {

// What may be shown of an answer as its bytes arrive: whole UTF-8 characters, and never a part of a
// stop string. Invalid bytes become U+FFFD once no continuation can save them. The result does not
// depend on how the bytes are cut: the stop string that is complete first ends the text, the
// longest of those that are complete at once. Costs one comparison a byte and stop string.
class StopText {
 public:
  explicit StopText(const std::vector<std::string>& stops);  // empty ones are ignored

  struct Output {
    std::string text;      // may be shown now
    bool stopped = false;  // a stop string is complete; nothing follows
    std::string stop;      // which one
  };
  Output add(std::string_view bytes);
  // The answer ends without a stop string: what was held back, an unfinished character as U+FFFD.
  std::string finish();

 private:
  // A stop string with its Knuth-Morris-Pratt table: `matched` bytes of it end the text so far.
  struct Stop {
    std::string text;
    std::vector<std::size_t> fallback;  // [n]: longest proper border of the first n bytes
    std::size_t matched = 0;

    bool advance(char c);  // true when complete
  };

  void scan(std::string_view text, Output& output);

  Utf8Text utf8_;
  std::vector<Stop> stops_;
  std::string held_;  // valid text that may be the beginning of a stop string
  bool stopped_ = false;
};

}  // namespace flotilla::batch
