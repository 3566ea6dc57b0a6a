#include "runner/raw_prompt.h"

#include <algorithm>

#include <fmt/format.h>

#include "runner/prepare.h"

namespace flotilla::runner {
namespace {

Result<RawPrompt> from_text(const std::string& text, const TextTools& tools, const char* param) {
  // Text that could not fit if each token were the longest one is refused before it costs time.
  const std::size_t least = text.size() / tools.piece_bytes_max;
  if (least >= static_cast<std::size_t>(tools.info.context))
    return fail(over_context(tools, fmt::format("at least {}", least), param));
  return RawPrompt{.tokens = tools.tokenizer->tokenize(text, true, false), .text = text};
}

Result<RawPrompt> from_tokens(const std::vector<std::int32_t>& ids, const TextTools& tools,
                              const char* param) {
  const auto wrong = std::ranges::find_if(
      ids, [&](std::int32_t id) { return id < 0 || id >= tools.info.vocabulary; });
  if (wrong != ids.end()) {
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("the {} has token {}; this model's are 0 to {}", param,
                                        *wrong, tools.info.vocabulary - 1),
                 .param = param});
  }
  return RawPrompt{.tokens = ids, .text = {}};
}

}  // namespace

Error over_context(const TextTools& tools, std::string_view prompt_tokens, const char* param) {
  const bool answers = std::string_view(param) != "input";
  return Error{.code = Code::InvalidArgument,
               .message = fmt::format(
                   "the {} has {} tokens, but this model's context holds {} and {}; "
                   "shorten the {}",
                   answers ? "prompt" : "input", prompt_tokens, tools.info.context,
                   answers ? "the answer needs at least one" : "one of them stays free", param),
               .param = param,
               .reason = "context_length_exceeded"};
}

Result<RawPrompt> make_raw_prompt(const api::RawPrompts::Prompt& prompt, const TextTools& tools,
                                  const char* param) {
  const auto* text = std::get_if<std::string>(&prompt);
  auto made = text != nullptr
                  ? from_text(*text, tools, param)
                  : from_tokens(std::get<std::vector<std::int32_t>>(prompt), tools, param);
  if (!made) return fail(made.error());
  if (made->tokens.size() >= static_cast<std::size_t>(tools.info.context))
    return fail(over_context(tools, std::to_string(made->tokens.size()), param));
  return made;
}

namespace {

// Turns a prompt into one whose answer stands between it and `suffix`.
Result<void> fill_in(RawPrompt& prompt, const std::string& suffix, const TextTools& tools) {
  const auto fill = tools.tokenizer->fill_tokens();
  if (!fill) {
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("suffix is not supported: \"{}\" ({}) has no tokens to "
                                        "fill in with; leave it out",
                                        tools.alias, tools.info.description),
                 .param = "suffix",
                 .reason = "unsupported_parameter"});
  }
  // What the model begins each text with stays in front of all.
  const std::vector<engine::Token> begin = tools.tokenizer->tokenize("", true, false);
  auto& tokens = prompt.tokens;
  const bool begins = begin.size() == 1 && !tokens.empty() && tokens.front() == begin.front();
  tokens.insert(tokens.begin() + (begins ? 1 : 0), fill->prefix);
  tokens.push_back(fill->suffix);
  const auto behind = tools.tokenizer->tokenize(suffix, false, false);
  tokens.insert(tokens.end(), behind.begin(), behind.end());
  tokens.push_back(fill->middle);
  if (tokens.size() >= static_cast<std::size_t>(tools.info.context))
    return fail(over_context(tools, std::to_string(tokens.size()), "suffix"));
  return {};
}

}  // namespace

Result<std::vector<RawPrompt>> make_raw_prompts(const api::RawPrompts& raw,
                                                const TextTools& tools) {
  std::vector<RawPrompt> out;
  for (const api::RawPrompts::Prompt& prompt : raw.prompts) {
    auto made = make_raw_prompt(prompt, tools, "prompt");
    if (!made) return fail(made.error());
    if (raw.echo && !std::holds_alternative<std::string>(prompt)) {
      for (const engine::Token token : made->tokens) made->text += tools.tokenizer->piece(token);
    }
    if (!raw.suffix.empty()) {
      if (auto filled = fill_in(*made, raw.suffix, tools); !filled) return fail(filled.error());
    }
    out.push_back(std::move(*made));
  }
  return out;
}

}  // namespace flotilla::runner
