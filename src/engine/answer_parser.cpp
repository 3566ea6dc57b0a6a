#include "engine/answer_parser.h"

#include <algorithm>
#include <chat-peg-parser.h>

namespace flotilla::engine {
namespace {

void remove_prefix(std::string& text, const std::string& prefix) {
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
}

std::string_view without_blanks_in_front(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

std::unique_ptr<common_chat_peg_mapper> mapper_for(common_chat_format format,
                                                   common_chat_msg& message) {
  switch (format) {
    case COMMON_CHAT_FORMAT_PEG_GEMMA4:
      return std::make_unique<common_chat_peg_gemma4_mapper>(message);
    case COMMON_CHAT_FORMAT_PEG_MINIMAX_M3:
      return std::make_unique<common_chat_peg_minimax_m3_mapper>(message);
    default: return std::make_unique<common_chat_peg_mapper>(message);
  }
}

class LlamaAnswerParser final : public AnswerParser {
 public:
  LlamaAnswerParser(const common_chat_params& params, const AnswerParserOptions& options)
      : format_(params.format),
        prompt_(params.generation_prompt),
        thoughts_start_(params.thinking_start_tag),
        thoughts_ends_(params.thinking_end_tags),
        options_(options) {
    if (!params.parser.empty()) arena_.load(params.parser);
    begun_ = read({}).message;
  }

  ParsedAnswer parse(std::string_view text, bool) const override {
    Reading reading = read(text);
    common_chat_msg& message = reading.message;
    // What there is of a call counts, also where a limit cut it off.
    if (!reading.fits && message.tool_calls.empty()) return read_by_marks(text);
    remove_prefix(message.content, begun_.content);
    remove_prefix(message.reasoning_content, begun_.reasoning_content);
    ParsedAnswer answer{.content = std::move(message.content),
                        .reasoning_content = std::move(message.reasoning_content)};
    for (common_chat_tool_call& call : message.tool_calls) {
      if (options_.one_call && !answer.tool_calls.empty()) break;
      answer.tool_calls.push_back({.id = std::move(call.id),
                                   .name = std::move(call.name),
                                   .arguments = std::move(call.arguments)});
    }
    return answer;
  }

  bool fits_as_written(std::string_view text) const {
    const ParsedAnswer answer = parse(text, true);
    return read(text).fits && answer.content == text && answer.reasoning_content.empty();
  }

 private:
  struct Reading {
    common_chat_msg message;
    bool fits = false;  // it is an answer of the form, or may become one with more text
  };

  // As llama-common's own function does it, which throws a text away that does not fit, and of a
  // part does not tell.
  Reading read(std::string_view text) const {
    Reading out;
    if (arena_.empty()) {
      out.message.content = text;
      out.fits = true;
      return out;
    }
    try {
      common_peg_parse_context context(prompt_ + std::string(text), COMMON_PEG_PARSE_FLAG_LENIENT);
      const common_peg_parse_result result = arena_.parse(context);
      mapper_for(format_, out.message)->from_ast(context.ast, result);
      out.fits = !result.fail();
    } catch (const std::exception&) {
      out = {};
    }
    return out;
  }

  // Of a text in no form that is known: what it thought, where the marks of that are there, and
  // all else as its content.
  ParsedAnswer read_by_marks(std::string_view text) const {
    ParsedAnswer answer;
    bool thinks = options_.thinks;
    const std::string_view inner = without_blanks_in_front(text);
    if (!thinks && !thoughts_start_.empty() && inner.starts_with(thoughts_start_)) {
      text = inner.substr(thoughts_start_.size());
      thinks = true;
    }
    std::size_t end = std::string_view::npos;
    std::size_t behind = 0;
    for (const std::string& mark : thoughts_ends_) {
      const std::size_t at = text.find(mark);
      if (at >= end) continue;
      end = at;
      behind = at + mark.size();
    }
    if (thinks) {
      answer.reasoning_content = text.substr(0, end);
      text = end == text.npos ? std::string_view() : without_blanks_in_front(text.substr(behind));
    }
    answer.content = text;
    return answer;
  }

  const common_chat_format format_;
  const std::string prompt_;  // the template's begin of the answer, which the parser reads too
  const std::string thoughts_start_;
  const std::vector<std::string> thoughts_ends_;
  const AnswerParserOptions options_;
  common_peg_arena arena_;
  common_chat_msg begun_;  // what the prompt itself says of the answer
};

}  // namespace

std::shared_ptr<const AnswerParser> make_answer_parser(const common_chat_params& params,
                                                       const AnswerParserOptions& options) {
  return std::make_shared<LlamaAnswerParser>(params, options);
}

bool shows_as_written(const common_chat_params& params) {
  return LlamaAnswerParser(params, {}).fits_as_written("A word, and two.");
}

}  // namespace flotilla::engine
