#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "batch/utf8_text.h"

namespace flotilla::batch {

// Where an answer's tokens lie in its text, so that the text can be shown in whole tokens. A token
// that ends inside a character belongs together with those that complete it.
class WholeTokens {
 public:
  // The next token's bytes.
  void add(std::string_view bytes);

  struct Part {
    std::size_t tokens = 0;
    std::size_t bytes = 0;  // of text; invalid bytes count as the U+FFFD that stands for them
  };
  // The most that can be taken of the first `ready` bytes of text not taken yet. They are. Tokens
  // without any text wait for some.
  Part take(std::size_t ready);
  // The tokens that begin before byte `ready` of what is not taken yet: all that had a part in a
  // text that ends there.
  std::size_t begun(std::size_t ready) const;
  std::size_t waiting() const { return ends_.size(); }

 private:
  static constexpr std::size_t kInside = static_cast<std::size_t>(-1);

  Utf8Text utf8_;
  std::size_t text_ = 0;           // bytes of whole characters so far
  std::size_t taken_ = 0;          // of them
  std::vector<std::size_t> ends_;  // of tokens not taken; kInside: in a character
};

}  // namespace flotilla::batch
