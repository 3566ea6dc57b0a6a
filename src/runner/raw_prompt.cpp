#include "runner/raw_prompt.h"

#include <algorithm>

#include <fmt/format.h>

#include "runner/prepare.h"

namespace flotilla::runner {
namespace {

Result<RawPrompt> from_text(const std::string& text, const TextTools& tools) {
  // Text that could not fit if each token were the longest one is refused before it costs time.
  const std::size_t least = text.size() / tools.piece_bytes_max;
  if (least >= static_cast<std::size_t>(tools.info.context))
    return fail(over_context(tools, fmt::format("at least {}", least), "prompt"));
  return RawPrompt{.tokens = tools.tokenizer->tokenize(text, true, false), .text = text};
}

Result<RawPrompt> from_tokens(const std::vector<std::int32_t>& ids, const TextTools& tools) {
  const auto wrong = std::ranges::find_if(
      ids, [&](std::int32_t id) { return id < 0 || id >= tools.info.vocabulary; });
  if (wrong != ids.end()) {
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("the prompt has token {}; this model's are 0 to {}", *wrong,
                                        tools.info.vocabulary - 1),
                 .param = "prompt"});
  }
  return RawPrompt{.tokens = ids, .text = {}};
}

}  // namespace

Error over_context(const TextTools& tools, std::string_view prompt_tokens, const char* param) {
  return Error{
      .code = Code::InvalidArgument,
      .message = fmt::format("the prompt has {} tokens, but this model's context holds {} and the "
                             "answer needs at least one; shorten the {}",
                             prompt_tokens, tools.info.context, param),
      .param = param,
      .reason = "context_length_exceeded"};
}

Result<std::vector<RawPrompt>> make_raw_prompts(const api::RawPrompts& raw,
                                                const TextTools& tools) {
  std::vector<RawPrompt> out;
  for (const api::RawPrompts::Prompt& prompt : raw.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    auto made = text != nullptr ? from_text(*text, tools)
                                : from_tokens(std::get<std::vector<std::int32_t>>(prompt), tools);
    if (!made) return fail(made.error());
    if (made->tokens.size() >= static_cast<std::size_t>(tools.info.context))
      return fail(over_context(tools, std::to_string(made->tokens.size()), "prompt"));
    if (raw.echo && text == nullptr) {
      for (const engine::Token token : made->tokens) made->text += tools.tokenizer->piece(token);
    }
    out.push_back(std::move(*made));
  }
  return out;
}

}  // namespace flotilla::runner
