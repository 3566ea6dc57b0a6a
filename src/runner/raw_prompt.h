#pragma once

#include <string>
#include <vector>

#include "api/raw_prompts.h"
#include "base/result.h"
#include "engine/engine.h"

namespace flotilla::runner {

struct TextTools;

// A prompt that no template touched.
struct RawPrompt {
  std::vector<engine::Token> tokens;
  std::string text;  // as an echo shows it; only where that was asked for
};

// The tokens of one text or of ids, range-checked. `param` is its name in the request.
Result<RawPrompt> make_raw_prompt(const api::RawPrompts::Prompt& prompt, const TextTools& tools,
                                  const char* param);

// As many tokens as a sequence may have, one of the answer included, or refused.
Error over_context(const TextTools& tools, std::string_view prompt_tokens, const char* param);

// The tokens of each prompt: a text gets the model's own beginning, and what looks like a control
// token in it is text; token ids are taken as they are, range-checked.
Result<std::vector<RawPrompt>> make_raw_prompts(const api::RawPrompts& raw, const TextTools& tools);

}  // namespace flotilla::runner
