#include "engine/answer_parser.h"

#include <optional>

namespace flotilla::engine {
namespace {

void remove_prefix(std::string& text, const std::string& prefix) {
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
}

class LlamaAnswerParser final : public AnswerParser {
 public:
  LlamaAnswerParser(const common_chat_params& params, const AnswerParserOptions& options)
      : params_(params), one_call_(options.one_call) {
    params_.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
    params_.parse_tool_calls = options.tools;
    if (!params.parser.empty()) params_.parser.load(params.parser);
    if (options.continued) begun_ = read({}, false).value_or(common_chat_msg());
  }

  ParsedAnswer parse(std::string_view text, bool whole) const override {
    std::optional<common_chat_msg> message = read(text, whole);
    // A call that a limit cut off is no whole answer, but what there is of it counts.
    if (!message && whole) message = read(text, false);
    if (!message) return {.content = std::string(text)};
    remove_prefix(message->content, begun_.content);
    remove_prefix(message->reasoning_content, begun_.reasoning_content);
    ParsedAnswer answer{.content = std::move(message->content),
                        .reasoning_content = std::move(message->reasoning_content)};
    for (common_chat_tool_call& call : message->tool_calls) {
      if (one_call_ && !answer.tool_calls.empty()) break;
      answer.tool_calls.push_back({.id = std::move(call.id),
                                   .name = std::move(call.name),
                                   .arguments = std::move(call.arguments)});
    }
    return answer;
  }

 private:
  std::optional<common_chat_msg> read(std::string_view text, bool whole) const {
    try {
      return common_chat_parse(std::string(text), !whole, params_);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  common_chat_parser_params params_;
  const bool one_call_;
  common_chat_msg begun_;
};

}  // namespace

std::shared_ptr<const AnswerParser> make_answer_parser(const common_chat_params& params,
                                                       const AnswerParserOptions& options) {
  return std::make_shared<LlamaAnswerParser>(params, options);
}

}  // namespace flotilla::engine
