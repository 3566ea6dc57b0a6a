#include "api/chat_assembler.h"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/json.h"
#include "api/json_answer.h"
#include "api/json_members.h"
#include "api/json_text.h"

namespace flotilla::api {
namespace {

constexpr int kChoicesMax = 128;
constexpr std::size_t kToolCallsMax = 1024;

struct PartialCall {
  std::string id, name, arguments;
};

struct Choice {
  std::string role = "assistant";
  std::string content;
  bool has_content = false;
  std::string reasoning;
  std::string refusal;
  std::vector<PartialCall> calls;
  std::string logprobs;  // items of a JSON list
  bool has_logprobs = false;
  std::string finish_reason;
  std::string stop;  // string that ended it
};

PartialCall* call_at(Choice& choice, std::int64_t at) {
  if (at < 0 || static_cast<std::size_t>(at) >= kToolCallsMax) return nullptr;
  if (choice.calls.size() <= static_cast<std::size_t>(at)) choice.calls.resize(at + 1);
  return &choice.calls[at];
}

void append_item(std::string& list, std::string_view item) {
  if (!list.empty()) list += ',';
  list += item;
}

void append_calls(Choice& choice, const json::Array& deltas) {
  for (const json::Value& item : deltas) {
    const json::Object* delta = item.if_object();
    if (delta == nullptr) continue;
    PartialCall* call = call_at(choice, json::integer_of(*delta, "index"));
    if (call == nullptr) continue;
    if (std::string id = json::text_of(*delta, "id"); !id.empty()) call->id = std::move(id);
    if (const json::Object* function = json::object_of(*delta, "function")) {
      call->name += json::text_of(*function, "name");
      call->arguments += json::text_of(*function, "arguments");
    }
  }
}

void append_delta(Choice& choice, const json::Object& delta) {
  if (std::string role = json::text_of(delta, "role"); !role.empty()) choice.role = std::move(role);
  if (const json::Value* content = delta.if_contains("content");
      content != nullptr && content->is_string()) {
    choice.content += std::string_view(content->get_string());
    choice.has_content = true;
  }
  choice.reasoning += json::text_of(delta, "reasoning_content");
  choice.refusal += json::text_of(delta, "refusal");
  if (const json::Array* calls = json::array_of(delta, "tool_calls")) append_calls(choice, *calls);
}

void write_calls(std::string& out, const std::vector<PartialCall>& calls) {
  out += R"(,"tool_calls":[)";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    out += i > 0 ? R"(,{"id":)" : R"({"id":)";
    append_quoted(out, calls[i].id);
    out += R"(,"type":"function","function":{"name":)";
    append_quoted(out, calls[i].name);
    out += R"(,"arguments":)";
    append_quoted(out, calls[i].arguments);
    out += "}}";
  }
  out += ']';
}

void write_choice(std::string& out, int index, const Choice& choice) {
  fmt::format_to(std::back_inserter(out), R"({{"index":{},"message":{{"role":)", index);
  append_quoted(out, choice.role);
  out += R"(,"content":)";
  if (choice.has_content && (choice.calls.empty() || !choice.content.empty())) {
    append_quoted(out, choice.content);
  } else {
    out += "null";
  }
  if (!choice.reasoning.empty()) {
    out += R"(,"reasoning_content":)";
    append_quoted(out, choice.reasoning);
  }
  if (!choice.refusal.empty()) {
    out += R"(,"refusal":)";
    append_quoted(out, choice.refusal);
  }
  if (!choice.calls.empty()) write_calls(out, choice.calls);
  out += R"(},"logprobs":)";
  if (choice.has_logprobs) {
    out += R"({"content":[)" + choice.logprobs + R"(],"refusal":null})";
  } else {
    out += "null";
  }
  out += R"(,"finish_reason":)";
  out += choice.finish_reason.empty() ? "null" : json_string(choice.finish_reason);
  if (!choice.stop.empty()) {
    out += R"(,"stop_reason":)";
    append_quoted(out, choice.stop);
  }
  out += '}';
}

}  // namespace

struct ChatAssembler::State {
  AnswerHead head;
  std::map<int, Choice> choices;
  std::string usage;   // JSON
  std::string served;  // JSON
  std::string fingerprint;

  Result<void> take_choice(const json::Object& object);
};

ChatAssembler::ChatAssembler() : state_(std::make_unique<State>()) {}
ChatAssembler::~ChatAssembler() = default;
ChatAssembler::ChatAssembler(ChatAssembler&&) noexcept = default;
ChatAssembler& ChatAssembler::operator=(ChatAssembler&&) noexcept = default;

Result<void> ChatAssembler::State::take_choice(const json::Object& object) {
  const std::int64_t index = json::integer_of(object, "index");
  if (index < 0 || index >= kChoicesMax) {
    return fail(Code::BadGateway,
                fmt::format("a chunk has choice {}; expected 0 to {}", index, kChoicesMax - 1));
  }
  Choice& choice = choices[static_cast<int>(index)];
  if (const json::Object* delta = json::object_of(object, "delta")) append_delta(choice, *delta);
  if (const json::Object* logprobs = json::object_of(object, "logprobs")) {
    if (const json::Array* items = json::array_of(*logprobs, "content")) {
      choice.has_logprobs = true;
      for (const json::Value& item : *items) append_item(choice.logprobs, json::to_text(item));
    }
  }
  if (std::string reason = json::text_of(object, "finish_reason"); !reason.empty()) {
    choice.finish_reason = std::move(reason);
    choice.stop = json::text_of(object, "stop_reason");
  }
  return {};
}

Result<void> ChatAssembler::feed(std::string_view chunk_json) {
  if (chunk_json == "[DONE]") return {};
  const auto parsed = json::parse_answer_object(chunk_json);
  if (!parsed) return fail(Code::BadGateway, "a chunk of the stream: " + parsed.error().message);
  const json::Object& chunk = *parsed;
  if (const json::Value* error = chunk.if_contains("error");
      error != nullptr && !error->is_null()) {
    return fail(parse_error_body(500, chunk_json));
  }
  State& state = *state_;
  if (state.head.id.empty()) state.head.id = json::text_of(chunk, "id");
  if (state.head.model.empty()) state.head.model = json::text_of(chunk, "model");
  if (const json::Value* created = chunk.if_contains("created");
      state.head.created == 0 && created != nullptr && created->is_int64()) {
    state.head.created = created->get_int64();
  }
  if (state.fingerprint.empty()) state.fingerprint = json::text_of(chunk, "system_fingerprint");
  if (const json::Object* usage = json::object_of(chunk, "usage"))
    state.usage = json::to_text(*usage);
  if (const json::Object* served = json::object_of(chunk, "x_flotilla")) {
    state.served = json::to_text(*served);
  }
  const json::Array* choices = json::array_of(chunk, "choices");
  if (choices == nullptr) return {};
  for (const json::Value& choice : *choices) {
    const json::Object* object = choice.if_object();
    if (object == nullptr)
      return fail(Code::BadGateway, "a chunk has a choice that is not an object");
    if (auto taken = state.take_choice(*object); !taken) return taken;
  }
  return {};
}

bool ChatAssembler::complete() const {
  for (const auto& [index, choice] : state_->choices) {
    if (choice.finish_reason.empty()) return false;
  }
  return !state_->choices.empty();
}

std::string ChatAssembler::answer() const {
  const State& state = *state_;
  std::string out = R"({"id":)";
  append_quoted(out, state.head.id);
  fmt::format_to(std::back_inserter(out), R"(,"object":"chat.completion","created":{},"model":)",
                 state.head.created);
  append_quoted(out, state.head.model);
  out += R"(,"choices":[)";
  bool first = true;
  for (const auto& [index, choice] : state.choices) {
    if (!first) out += ',';
    first = false;
    write_choice(out, index, choice);
  }
  out += ']';
  if (!state.usage.empty()) out += R"(,"usage":)" + state.usage;
  if (!state.fingerprint.empty()) {
    out += R"(,"system_fingerprint":)";
    append_quoted(out, state.fingerprint);
  }
  if (!state.served.empty()) out += R"(,"x_flotilla":)" + state.served;
  out += '}';
  return out;
}

void ChatAssembler::begin(const AnswerHead& head) { state_->head = head; }

void ChatAssembler::add(int choice, const ChatDelta& delta) {
  Choice& into = state_->choices[choice];
  into.content += delta.content;
  into.has_content = true;
  into.reasoning += delta.reasoning_content;
  if (!delta.stop.empty()) into.stop = delta.stop;
  for (const ToolCallDelta& part : delta.tool_calls) {
    PartialCall* call = call_at(into, part.index);
    if (call == nullptr) continue;
    if (!part.id.empty()) call->id = part.id;
    call->name += part.name;
    call->arguments += part.arguments;
  }
  for (const TokenLogprob& token : delta.logprobs) {
    std::string item;
    append_logprob(item, token);
    append_item(into.logprobs, item);
    into.has_logprobs = true;
  }
}

void ChatAssembler::finish_choice(int choice, std::string_view reason) {
  state_->choices[choice].finish_reason = reason;
}

void ChatAssembler::set_usage(const Usage& usage, const ServedBy& served) {
  state_->usage.clear();
  append_usage(state_->usage, usage);
  state_->served.clear();
  append_served_by(state_->served, served);
}

}  // namespace flotilla::api
