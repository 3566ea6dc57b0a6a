#include "runner/text_answers.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/tokens.h"

namespace flotilla::runner {
namespace {

// These bodies may leave the model out.
Result<void> check_model(const std::string& model, const CallHeaders& headers,
                         const TextTools& tools) {
  if (headers.protocol || model.empty() || model == tools.alias) return {};
  return fail(unknown_model(model, tools));
}

// So much may be asked at once: several contexts, whose count somebody may want to know.
Result<void> check_size(std::size_t size, std::size_t each, const char* field, const char* unit,
                        const TextTools& tools) {
  constexpr std::size_t kContextsMax = 8;
  constexpr std::size_t kLeast = 64 << 10;
  const std::size_t most =
      std::max(kLeast, kContextsMax * each * static_cast<std::size_t>(tools.info.context));
  if (size <= most) return {};
  return fail({.code = Code::InvalidArgument,
               .message = fmt::format("{} has {} {}; {} are taken at once ({} times the context's "
                                      "{} tokens): send it in parts",
                                      field, size, unit, most, kContextsMax, tools.info.context),
               .param = field});
}

// A prompt may be longer than the context here: that is what a client may want to know.
Result<std::vector<engine::Token>> prompt_of_messages(const std::string& body,
                                                      const CallHeaders& headers,
                                                      const TextTools& tools,
                                                      const Compiles& compiles) {
  auto chat = prepare_chat(body, headers, tools, 0, compiles);
  if (!chat) return fail(chat.error());
  return std::move(chat->prompt);
}

}  // namespace

Result<std::string> tokenize_answer(const std::string& body, const CallHeaders& headers,
                                    const TextTools& tools, const Compiles& compiles) {
  const auto request = api::parse_tokenize(body);
  if (!request) return fail(request.error());
  if (auto right = check_model(request->model, headers, tools); !right) return fail(right.error());
  api::TokenizeAnswer answer{.model = headers.alias.empty() ? tools.alias : headers.alias,
                             .tokens = {},
                             .pieces = {},
                             .context = tools.info.context};
  if (request->messages) {
    auto prompt = prompt_of_messages(body, headers, tools, compiles);
    if (!prompt) return fail(prompt.error());
    answer.tokens = std::move(*prompt);
  } else {
    constexpr std::size_t kTokenBytes = 4;  // about what a token comes to
    if (auto fits = check_size(request->text.size(), kTokenBytes, "content", "bytes", tools); !fits)
      return fail(fits.error());
    answer.tokens =
        tools.tokenizer->tokenize(request->text, request->add_special, request->parse_special);
  }
  if (request->pieces) {
    for (const engine::Token token : answer.tokens)
      answer.pieces.push_back(tools.tokenizer->piece(token));
  }
  return api::to_json(answer);
}

Result<std::string> detokenize_answer(const std::string& body, const CallHeaders& headers,
                                      const TextTools& tools, const Compiles& /*compiles*/) {
  const auto request = api::parse_detokenize(body);
  if (!request) return fail(request.error());
  if (auto right = check_model(request->model, headers, tools); !right) return fail(right.error());
  if (auto fits = check_size(request->tokens.size(), 1, "tokens", "ids", tools); !fits)
    return fail(fits.error());
  std::string text;
  for (std::size_t i = 0; i < request->tokens.size(); ++i) {
    const std::int32_t token = request->tokens[i];
    if (token < 0 || token >= tools.info.vocabulary) {
      return fail({.code = Code::InvalidArgument,
                   .message = fmt::format("tokens[{}] is {}; this model's are 0 to {}", i, token,
                                          tools.info.vocabulary - 1),
                   .param = "tokens"});
    }
    text += tools.tokenizer->piece(token);
  }
  return api::detokenize_json(text);
}

Result<std::string> count_answer(const std::string& body, const CallHeaders& headers,
                                 const TextTools& tools, const Compiles& compiles) {
  const auto prompt = prompt_of_messages(body, headers, tools, compiles);
  if (!prompt) return fail(prompt.error());
  return api::token_count_json(prompt->size());
}

}  // namespace flotilla::runner
