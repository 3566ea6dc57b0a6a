#include "api/responses_answer.h"

#include <vector>

#include <fmt/format.h>

#include "api/chat_pieces.h"
#include "api/error_body.h"
#include "api/event_form.h"
#include "api/json.h"
#include "api/json_answer.h"
#include "api/json_text.h"
#include "api/renamed_fields.h"

namespace flotilla::api {
namespace {

enum class Kind { Reasoning, Message, Call };

// One item of the output, as far as it has come.
struct Item {
  Kind kind = Kind::Message;
  std::string id;
  std::string text;  // or the arguments
  std::string call_id, name;
  json::Array logprobs;
};

json::Object part_of(const Item& item, bool whole) {
  const std::string_view text = whole ? std::string_view(item.text) : "";
  if (item.kind == Kind::Reasoning) return json::Object{{"type", "reasoning_text"}, {"text", text}};
  return json::Object{{"type", "output_text"},
                      {"text", text},
                      {"annotations", json::Array{}},
                      {"logprobs", whole ? item.logprobs : json::Array{}}};
}

json::Object item_json(const Item& item, std::string_view status, bool whole) {
  json::Array parts;
  if (whole && item.kind != Kind::Call) parts.push_back(part_of(item, true));
  json::Object out{{"id", item.id}};
  switch (item.kind) {
    case Kind::Reasoning:
      out["type"] = "reasoning";
      out["summary"] = json::Array{};
      out["content"] = std::move(parts);
      break;
    case Kind::Message:
      out["type"] = "message";
      out["role"] = "assistant";
      out["content"] = std::move(parts);
      break;
    case Kind::Call:
      out["type"] = "function_call";
      out["call_id"] = item.call_id;
      out["name"] = item.name;
      out["arguments"] = whole ? item.text : "";
      break;
  }
  out["status"] = status;
  return out;
}

json::Value usage_json(const Usage& usage, std::int64_t reasoning_tokens) {
  return json::Object{
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details",
       json::Object{{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", json::Object{{"reasoning_tokens", reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

constexpr RenamedField kNames[] = {{"response_format.json_schema.", "text.format."},
                                   {"response_format", "text.format"},
                                   {"tool_choice.allowed_tools.", "tool_choice."},
                                   {".function.", "."},
                                   {"reasoning_effort", "reasoning.effort"},
                                   {"max_completion_tokens", "max_output_tokens"},
                                   {"messages", "input"}};

class ResponsesAnswer final : public EventForm {
 public:
  explicit ResponsesAnswer(ResponsesAnswerOptions options) : options_(std::move(options)) {}

  std::string answer(std::string_view completion) override;
  std::string error(const Error& error) const override {
    return openai_error_body(with_names(error, kNames));
  }
  void follow(const KeptAnswer& earlier) override { earlier_ = earlier.messages; }
  std::optional<KeptAnswer> take_kept() override { return std::exchange(kept_, std::nullopt); }

 private:
  void begin(const AnswerPiece& piece) override;
  void take(const ChoicePiece& choice) override;
  void take_call(const ToolCallPiece& call);
  Item& open(Kind kind);
  void close(std::string_view status);
  void delta(std::string_view type, std::string_view text, bool with_logprobs = false);
  void end() override;
  void fail_stream(const Error& error) override;
  json::Object response(std::string_view status, bool whole) const;
  json::Object assistant_message() const;
  void keep(const std::string& body);
  void write(std::string_view type, json::Object event);

  const ResponsesAnswerOptions options_;
  std::string earlier_;
  std::int64_t sequence_ = 0;
  bool open_ = false;  // the last item
  std::string id_;
  std::int64_t created_ = 0;
  std::string model_;
  std::vector<Item> items_;
  std::size_t call_ = 0;  // of the call item that is open
  std::string finish_;
  std::optional<Error> failed_;
  std::optional<KeptAnswer> kept_;
};

void ResponsesAnswer::write(std::string_view type, json::Object event) {
  event["type"] = type;
  event["sequence_number"] = sequence_++;
  out_ += fmt::format("event: {}\ndata: {}\n\n", type, json::to_text(event));
}

void ResponsesAnswer::begin(const AnswerPiece& piece) {
  begun_ = true;
  id_ = piece.id;
  created_ = piece.created;
  model_ = piece.model;
  write("response.created", json::Object{{"response", response("in_progress", false)}});
  write("response.in_progress", json::Object{{"response", response("in_progress", false)}});
}

Item& ResponsesAnswer::open(Kind kind) {
  close("completed");
  const char* prefix = kind == Kind::Reasoning ? "rs" : kind == Kind::Message ? "msg" : "fc";
  Item& item = items_.emplace_back();
  item.kind = kind;
  item.id = fmt::format("{}_{}_{}", prefix, id_, items_.size() - 1);
  open_ = true;
  return item;
}

// Said once the item has all that its first event shows.
void ResponsesAnswer::delta(std::string_view type, std::string_view text, bool with_logprobs) {
  json::Object event{
      {"item_id", items_.back().id}, {"output_index", items_.size() - 1}, {"delta", text}};
  if (items_.back().kind != Kind::Call) event["content_index"] = 0;
  if (with_logprobs) event["logprobs"] = json::Array{};
  write(type, std::move(event));
}

void ResponsesAnswer::close(std::string_view status) {
  if (!std::exchange(open_, false)) return;
  const Item& item = items_.back();
  const json::Object at{{"item_id", item.id}, {"output_index", items_.size() - 1}};
  if (item.kind == Kind::Call) {
    json::Object done = at;
    done["name"] = item.name;
    done["arguments"] = item.text;
    write("response.function_call_arguments.done", std::move(done));
  } else {
    json::Object done = at;
    done["content_index"] = 0;
    json::Object part = done;
    part["part"] = part_of(item, true);
    done["text"] = item.text;
    const bool message = item.kind == Kind::Message;
    if (message) done["logprobs"] = item.logprobs;
    write(message ? "response.output_text.done" : "response.reasoning_text.done", std::move(done));
    write("response.content_part.done", std::move(part));
  }
  write("response.output_item.done",
        json::Object{{"output_index", items_.size() - 1}, {"item", item_json(item, status, true)}});
}

void ResponsesAnswer::take_call(const ToolCallPiece& call) {
  if (!open_ || items_.back().kind != Kind::Call || call_ != call.index) {
    Item& item = open(Kind::Call);
    call_ = call.index;
    item.call_id = call.id;
    item.name = call.name;
    write("response.output_item.added",
          json::Object{{"output_index", items_.size() - 1},
                       {"item", item_json(item, "in_progress", false)}});
  }
  if (call.arguments.empty()) return;
  items_.back().text += call.arguments;
  delta("response.function_call_arguments.delta", call.arguments);
}

void ResponsesAnswer::take(const ChoicePiece& choice) {
  const auto take_text = [this](Kind kind, const std::string& text) -> Item& {
    if (!open_ || items_.back().kind != kind) {
      Item& item = open(kind);
      write("response.output_item.added",
            json::Object{{"output_index", items_.size() - 1},
                         {"item", item_json(item, "in_progress", false)}});
      write("response.content_part.added", json::Object{{"item_id", item.id},
                                                        {"output_index", items_.size() - 1},
                                                        {"content_index", 0},
                                                        {"part", part_of(item, false)}});
    }
    items_.back().text += text;
    return items_.back();
  };
  if (!choice.reasoning.empty()) {
    take_text(Kind::Reasoning, choice.reasoning);
    delta("response.reasoning_text.delta", choice.reasoning);
  }
  if (!choice.content.empty()) {
    Item& item = take_text(Kind::Message, choice.content);
    if (const auto logprobs = json::parse_answer(choice.logprobs.empty() ? "[]" : choice.logprobs);
        logprobs && logprobs->is_array()) {
      const json::Array& list = logprobs->get_array();
      item.logprobs.insert(item.logprobs.end(), list.begin(), list.end());
    }
    delta("response.output_text.delta", choice.content, true);
  }
  for (const ToolCallPiece& call : choice.calls) take_call(call);
  if (!choice.finish_reason.empty()) finish_ = choice.finish_reason;
}

json::Object ResponsesAnswer::response(std::string_view status, bool whole) const {
  json::Object out{{"id", "resp_" + id_},
                   {"object", "response"},
                   {"created_at", created_},
                   {"status", status},
                   {"model", model_},
                   {"error", nullptr},
                   {"incomplete_details", nullptr}};
  if (failed_) out["error"] = json::Object{{"code", "server_error"}, {"message", failed_->message}};
  if (status == "incomplete") {
    out["incomplete_details"] =
        json::Object{{"reason", finish_ == "length" ? "max_output_tokens" : "content_filter"}};
  }
  json::Array output;
  for (const Item& item : items_) {
    const bool cut = status != "completed" && &item == &items_.back();
    output.push_back(item_json(item, cut ? "incomplete" : "completed", true));
  }
  out["output"] = std::move(output);
  out["usage"] = whole ? usage_json(usage_, reasoning_tokens_) : json::Value();
  const auto shown = json::parse_object(options_.shown);
  if (shown) out.insert(shown->begin(), shown->end());
  if (const auto served = json::parse(served_.empty() ? "null" : served_); served && whole)
    out["x_flotilla"] = *served;
  return out;
}

json::Object ResponsesAnswer::assistant_message() const {
  std::string text;
  std::string reasoning;
  json::Array calls;
  for (const Item& item : items_) {
    if (item.kind == Kind::Message) text += item.text;
    if (item.kind == Kind::Reasoning) reasoning += item.text;
    if (item.kind != Kind::Call) continue;
    calls.push_back(
        json::Object{{"id", item.call_id},
                     {"type", "function"},
                     {"function", json::Object{{"name", item.name}, {"arguments", item.text}}}});
  }
  json::Object message{{"role", "assistant"}, {"content", text}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  if (!calls.empty()) {
    if (text.empty()) message["content"] = nullptr;
    message["tool_calls"] = std::move(calls);
  }
  return message;
}

void ResponsesAnswer::keep(const std::string& body) {
  if (!options_.store) return;
  kept_ =
      KeptAnswer{.id = "resp_" + id_, .messages = earlier_, .body = body, .input = options_.items};
  // The list's own brackets go.
  const std::string& own = options_.messages;
  if (own.size() > 2) kept_->messages += own.substr(1, own.size() - 2) + ',';
  kept_->messages += json::to_text(assistant_message()) + ',';
}

void ResponsesAnswer::end() {
  const bool whole = finish_ != "length" && finish_ != "content_filter";
  close(whole ? "completed" : "incomplete");
  json::Object made = response(whole ? "completed" : "incomplete", true);
  keep(json::to_text(made));
  write(whole ? "response.completed" : "response.incomplete",
        json::Object{{"response", std::move(made)}});
}

void ResponsesAnswer::fail_stream(const Error& error) {
  failed_ = error;
  write("error",
        json::Object{{"code", "server_error"}, {"message", error.message}, {"param", nullptr}});
  write("response.failed", json::Object{{"response", response("failed", false)}});
}

// The same as of a stream whose chunks came all at once.
std::string ResponsesAnswer::answer(std::string_view completion) {
  const AnswerPiece piece = read_completion(completion);
  begin(piece);
  for (const ChoicePiece& choice : piece.choices) take(choice);
  usage_ = piece.usage.value_or(Usage{});
  reasoning_tokens_ = piece.reasoning_tokens;
  served_ = piece.served;
  const bool whole = finish_ != "length" && finish_ != "content_filter";
  std::string body = json::to_text(response(whole ? "completed" : "incomplete", true));
  keep(body);
  out_.clear();
  return body;
}

}  // namespace

std::unique_ptr<AnswerForm> make_responses_answer(ResponsesAnswerOptions options) {
  return std::make_unique<ResponsesAnswer>(std::move(options));
}

}  // namespace flotilla::api
