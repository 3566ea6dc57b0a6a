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
