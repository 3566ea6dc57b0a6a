#include "api/anthropic_answer.h"

#include <fmt/format.h>

#include "api/anthropic.h"
#include "api/chat_pieces.h"
#include "api/event_form.h"
#include "api/json.h"
#include "api/json_answer.h"
#include "api/json_text.h"
#include "api/renamed_fields.h"

namespace flotilla::api {
namespace {

std::string_view stop_reason(const ChoicePiece& choice) {
  if (choice.finish_reason == "length") return "max_tokens";
  if (choice.finish_reason == "tool_calls" || choice.finish_reason == "function_call")
    return "tool_use";
  if (choice.finish_reason == "content_filter") return "refusal";
  return choice.stop.empty() ? "end_turn" : "stop_sequence";
}

// Anthropic counts what came from the cache beside the rest of the input.
std::string usage_json(const Usage& usage, std::int64_t thinking_tokens) {
  std::string out = fmt::format(R"({{"input_tokens":{},"cache_creation_input_tokens":0,)"
                                R"("cache_read_input_tokens":{},"output_tokens":{})",
                                usage.prompt_tokens - usage.cached_tokens, usage.cached_tokens,
                                usage.completion_tokens);
  if (thinking_tokens > 0)
    out += fmt::format(R"(,"output_tokens_details":{{"thinking_tokens":{}}})", thinking_tokens);
  return out + '}';
}

// Arguments that are no object (a model without grammar) are shown as what they are.
json::Object input_of(const std::string& arguments) {
  auto parsed = json::parse_answer_object(arguments.empty() ? "{}" : arguments);
  if (parsed) return std::move(*parsed);
  return json::Object{{"arguments", arguments}};
}

std::string head_json(const AnswerPiece& piece) {
  return fmt::format(R"("id":{},"type":"message","role":"assistant","model":{})",
                     json_string("msg_" + piece.id), json_string(piece.model));
}

std::string or_null(std::string_view text) { return text.empty() ? "null" : json_string(text); }

class AnthropicAnswer final : public EventForm {
 public:
  explicit AnthropicAnswer(bool hide_thinking) : hide_thinking_(hide_thinking) {}

  std::string keep_alive() override {
    return begun_ ? "event: ping\ndata: {\"type\":\"ping\"}\n\n" : ": keep-alive\n\n";
  }
  std::string answer(std::string_view completion) override;
  std::string error(const Error& error) const override { return messages_error_body(error); }

 private:
  enum class Block { None, Thinking, Text, Tool };

  void begin(const AnswerPiece& piece) override;
  void take(const ChoicePiece& choice) override;
  void take_call(const ToolCallPiece& call);
  void open(Block block, const std::string& content);
  void close();
  void delta(std::string_view type, std::string_view member, std::string_view text);
  void end() override;
  void fail_stream(const Error& error) override { write("error", anthropic_error_body(error)); }
  void write(std::string_view name, const std::string& json) {
    out_ += fmt::format("event: {}\ndata: {}\n\n", name, json);
  }

  const bool hide_thinking_;
  Block block_ = Block::None;
  int blocks_ = 0;        // begun
  std::size_t call_ = 0;  // of the tool block that is open
  ChoicePiece last_;
};

void AnthropicAnswer::begin(const AnswerPiece& piece) {
  begun_ = true;
  write("message_start",
        fmt::format(R"({{"type":"message_start","message":{{{},"content":[],"stop_reason":null,)"
                    R"("stop_sequence":null,"usage":{}}}}})",
                    head_json(piece), usage_json(piece.usage.value_or(Usage{}), 0)));
}

void AnthropicAnswer::open(Block block, const std::string& content) {
  close();
  block_ = block;
  write("content_block_start",
        fmt::format(R"({{"type":"content_block_start","index":{},"content_block":{}}})", blocks_,
                    content));
  ++blocks_;
}

void AnthropicAnswer::close() {
  if (block_ == Block::None) return;
  if (block_ == Block::Thinking) delta("signature_delta", "signature", "");
  block_ = Block::None;
  write("content_block_stop",
        fmt::format(R"({{"type":"content_block_stop","index":{}}})", blocks_ - 1));
}

void AnthropicAnswer::delta(std::string_view type, std::string_view member, std::string_view text) {
  write(
      "content_block_delta",
      fmt::format(R"({{"type":"content_block_delta","index":{},"delta":{{"type":"{}","{}":{}}}}})",
                  blocks_ - 1, type, member, json_string(text)));
}

void AnthropicAnswer::take_call(const ToolCallPiece& call) {
  if (block_ != Block::Tool || call_ != call.index) {
    call_ = call.index;
    open(Block::Tool, fmt::format(R"({{"type":"tool_use","id":{},"name":{},"input":{{}}}})",
                                  json_string(call.id), json_string(call.name)));
  }
  if (!call.arguments.empty()) delta("input_json_delta", "partial_json", call.arguments);
}

void AnthropicAnswer::take(const ChoicePiece& choice) {
  if (!choice.reasoning.empty()) {
    if (block_ != Block::Thinking)
      open(Block::Thinking, R"({"type":"thinking","thinking":"","signature":""})");
    if (!hide_thinking_) delta("thinking_delta", "thinking", choice.reasoning);
  }
  if (!choice.content.empty()) {
    if (block_ != Block::Text) open(Block::Text, R"({"type":"text","text":""})");
    delta("text_delta", "text", choice.content);
  }
  for (const ToolCallPiece& call : choice.calls) take_call(call);
  if (!choice.finish_reason.empty()) last_ = choice;
}

void AnthropicAnswer::end() {
  close();
  write("message_delta",
        fmt::format(R"({{"type":"message_delta","delta":{{"stop_reason":"{}","stop_sequence":{}}},)"
                    R"("usage":{}{}}})",
                    stop_reason(last_), or_null(last_.stop), usage_json(usage_, reasoning_tokens_),
                    served_.empty() ? "" : R"(,"x_flotilla":)" + served_));
  write("message_stop", R"({"type":"message_stop"})");
}

std::string AnthropicAnswer::answer(std::string_view completion) {
  const AnswerPiece piece = read_completion(completion);
  const ChoicePiece choice = piece.choices.empty() ? ChoicePiece{} : piece.choices.front();
  json::Array content;
  if (!choice.reasoning.empty()) {
    content.push_back(json::Object{{"type", "thinking"},
                                   {"thinking", hide_thinking_ ? "" : choice.reasoning},
                                   {"signature", ""}});
  }
  if (!choice.content.empty())
    content.push_back(json::Object{{"type", "text"}, {"text", choice.content}});
  for (const ToolCallPiece& call : choice.calls) {
    content.push_back(json::Object{{"type", "tool_use"},
                                   {"id", call.id},
                                   {"name", call.name},
                                   {"input", input_of(call.arguments)}});
  }
  return fmt::format(R"({{{},"content":{},"stop_reason":"{}","stop_sequence":{},"usage":{}{}}})",
                     head_json(piece), json::to_text(content), stop_reason(choice),
                     or_null(choice.stop),
                     usage_json(piece.usage.value_or(Usage{}), piece.reasoning_tokens),
                     piece.served.empty() ? "" : R"(,"x_flotilla":)" + piece.served);
}

}  // namespace

std::string messages_error_body(const Error& error) {
  constexpr RenamedField kNames[] = {{"response_format.json_schema.", "output_config.format."},
                                     {"response_format", "output_config.format"},
                                     {".function.parameters", ".input_schema"},
                                     {".function.", "."},
                                     {"reasoning_effort", "output_config.effort"},
                                     {"stop", "stop_sequences"}};
  return anthropic_error_body(with_names(error, kNames));
}

std::unique_ptr<AnswerForm> make_anthropic_answer(bool hide_thinking) {
  return std::make_unique<AnthropicAnswer>(hide_thinking);
}

}  // namespace flotilla::api
