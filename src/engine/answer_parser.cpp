#include "engine/answer_parser.h"

#include <algorithm>
#include <chat-peg-parser.h>

namespace flotilla::engine {
namespace {

void remove_prefix(std::string& text, const std::string& prefix) {
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
}

std::size_t blanks_in_front(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n"), text.size());
}

// A saved form whose texts may go on behind what it knows.
std::string without_ends(std::string form) {
  constexpr std::string_view kEnd = R"({"type":"end"})";
  constexpr std::string_view kNothing = R"({"type":"epsilon"})";
  for (std::size_t at = form.find(kEnd); at != form.npos; at = form.find(kEnd, at))
    form.replace(at, kEnd.size(), kNothing);
  return form;
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
    if (!params.parser.empty()) {
      whole_.load(params.parser);
      begin_.load(without_ends(params.parser));
    }
    begun_ = read(whole_, {}).message;
  }

  ParsedAnswer parse(std::string_view text, bool) const override {
    Reading reading = read(whole_, text);
    if (!reading.fits) {
      reading = read(begin_, text);
      // What follows a call in no known form is dropped.
      if (!reading.fits || reading.message.tool_calls.empty())
        return read_by_marks(text, reading.message.content);
    }
    common_chat_msg& message = reading.message;
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
    const Reading reading = read(whole_, text);
    return reading.fits && reading.message.content == text &&
           reading.message.reasoning_content.empty();
  }

 private:
  struct Reading {
    common_chat_msg message;
    bool fits = false;  // it is an answer of the form, or may become one with more text
  };

  // As llama-common's own function does it, which throws a text away that does not fit, and of a
  // part does not tell. Without what the prompt itself says of the answer.
  Reading read(const common_peg_arena& form, std::string_view text) const {
    Reading out;
    if (form.empty()) {
      out.message.content = text;
      out.fits = true;
      return out;
    }
    try {
      common_peg_parse_context context(prompt_ + std::string(text), COMMON_PEG_PARSE_FLAG_LENIENT);
      const common_peg_parse_result result = form.parse(context);
      mapper_for(format_, out.message)->from_ast(context.ast, result);
      out.fits = !result.fail();
    } catch (const std::exception&) {
      out = {};
    }
    remove_prefix(out.message.content, begun_.content);
    remove_prefix(out.message.reasoning_content, begun_.reasoning_content);
    return out;
  }

  // Where the content of a text in no known form begins: behind what it thought, where the marks
  // of that are there.
  std::size_t skip_thoughts(std::string_view text, std::string& thoughts) const {
    std::size_t from = 0;
    if (!options_.thinks) {
      const std::size_t inner = blanks_in_front(text);
      if (thoughts_start_.empty() || !text.substr(inner).starts_with(thoughts_start_)) return 0;
      from = inner + thoughts_start_.size();
    }
    std::size_t end = text.size();
    std::size_t behind = text.size();
    for (const std::string& mark : thoughts_ends_) {
      const std::size_t at = text.find(mark, from);
      if (at >= end) continue;
      end = at;
      behind = at + mark.size();
    }
    thoughts = text.substr(from, end - from);
    return behind;
  }

  // `begin`: what its content began with while it was in the form; the rest goes on behind that.
  ParsedAnswer read_by_marks(std::string_view text, const std::string& begin) const {
    ParsedAnswer answer;
    const std::size_t from = skip_thoughts(text, answer.reasoning_content);
    const std::string_view rest = text.substr(from);
    const std::size_t at = begin.empty() ? rest.npos : rest.find(begin);
    const std::size_t blanks = from == 0 ? 0 : blanks_in_front(rest);
    answer.content = rest.substr(at == rest.npos ? blanks : at);
    return answer;
  }

  const common_chat_format format_;
  const std::string prompt_;  // the template's begin of the answer, which the parser reads too
  const std::string thoughts_start_;
  const std::vector<std::string> thoughts_ends_;
  const AnswerParserOptions options_;
  common_peg_arena whole_;  // the form
  common_peg_arena begin_;  // the same with anything behind it
  common_chat_msg begun_;   // what the prompt itself says of the answer
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
