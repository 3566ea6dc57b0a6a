#pragma once

#include <chrono>
#include <string>

#include "engine/engine.h"

namespace flotilla::engine {

// How the synthetic engine behaves. Its "model" is a hash: a sequence's next token depends on its
// own tokens alone, so every law about batches, chunks, moves and resumption can be checked
// exactly. Tokens 0-255 are bytes, then come kFakeTurnStart "<|im_start|>" and kFakeTurnEnd
// "<|im_end|>", which ends an answer (one greedy token in ~100). Answers are letters, spaces and
// some longer characters, valid UTF-8 under any sampling without logit_bias.
struct FakeOptions {
  int width = 8;
  int context = 4096;
  int step_tokens_max = 512;
  std::chrono::microseconds per_step{0};  // time that a pass takes; 0 = no waiting
  std::chrono::microseconds per_token{0};
  bool whole_prompts = false;  // as a model that was made for vectors alone
  int draft_tokens_max = 0;
  int period = 0;             // > 0: mostly it says again what stood so many tokens before
  std::string crash_on = {};  // a pass in which a sequence's last bytes are these kills the process
};

constexpr Token kFakeTurnStart = 256;
constexpr Token kFakeTurnEnd = 257;
constexpr int kFakeVocabulary = 258;

LoadedModel make_fake_model(const FakeOptions& options);

}  // namespace flotilla::engine
