#include "api/chat_pieces.h"

#include "api/error_body.h"
#include "api/json.h"
#include "api/json_answer.h"

namespace flotilla::api {
namespace {

constexpr std::int64_t kIndexMax = 1024;

std::string text_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::int64_t number_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

const json::Object* object_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr ? value->if_object() : nullptr;
}

const json::Array* array_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr ? value->if_array() : nullptr;
}

// A whole message's calls carry no index: their place is it.
void read_calls(const json::Array& list, std::vector<ToolCallPiece>& calls) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json::Object* object = list[i].if_object();
    if (object == nullptr) continue;
    const std::int64_t index =
        object->contains("index") ? number_of(*object, "index") : static_cast<std::int64_t>(i);
    if (index < 0 || index >= kIndexMax) continue;
    ToolCallPiece& call = calls.emplace_back();
    call.index = static_cast<std::size_t>(index);
    call.id = text_of(*object, "id");
    if (const json::Object* function = object_of(*object, "function")) {
      call.name = text_of(*function, "name");
      call.arguments = text_of(*function, "arguments");
    }
  }
}

ChoicePiece read_choice(const json::Object& object, std::string_view message) {
  ChoicePiece choice;
  const std::int64_t index = number_of(object, "index");
  choice.index = index >= 0 && index < kIndexMax ? static_cast<int>(index) : 0;
  if (const json::Object* delta = object_of(object, message)) {
    choice.content = text_of(*delta, "content");
    choice.reasoning = text_of(*delta, "reasoning_content");
    if (const json::Array* calls = array_of(*delta, "tool_calls")) read_calls(*calls, choice.calls);
  }
  if (const json::Object* logprobs = object_of(object, "logprobs")) {
    if (const json::Array* tokens = array_of(*logprobs, "content"))
      choice.logprobs = json::to_text(*tokens);
  }
  choice.finish_reason = text_of(object, "finish_reason");
  choice.stop = text_of(object, "stop_reason");
  return choice;
}

AnswerPiece read_piece(std::string_view text, std::string_view message) {
  constexpr std::string_view kPrefix = "chatcmpl-";
  AnswerPiece piece;
  const auto object = json::parse_answer_object(text);
  if (!object) {
    piece.error = Error{.code = Code::BadGateway,
                        .message = "the answer is not JSON: " + object.error().message};
    return piece;
  }
  if (const json::Value* error = object->if_contains("error");
      error != nullptr && !error->is_null()) {
    piece.error = parse_error_body(500, text);
    return piece;
  }
  piece.id = text_of(*object, "id");
  if (piece.id.starts_with(kPrefix)) piece.id.erase(0, kPrefix.size());
  piece.created = number_of(*object, "created");
  piece.model = text_of(*object, "model");
  if (const json::Object* usage = object_of(*object, "usage")) {
    piece.usage = Usage{.prompt_tokens = number_of(*usage, "prompt_tokens"),
                        .completion_tokens = number_of(*usage, "completion_tokens")};
    if (const json::Object* details = object_of(*usage, "prompt_tokens_details"))
      piece.usage->cached_tokens = number_of(*details, "cached_tokens");
    if (const json::Object* details = object_of(*usage, "completion_tokens_details"))
      piece.reasoning_tokens = number_of(*details, "reasoning_tokens");
  }
  if (const json::Object* served = object_of(*object, "x_flotilla"))
    piece.served = json::to_text(*served);
  if (const json::Array* choices = array_of(*object, "choices")) {
    for (const json::Value& choice : *choices) {
      if (choice.is_object()) piece.choices.push_back(read_choice(choice.get_object(), message));
    }
  }
  return piece;
}

}  // namespace

AnswerPiece read_chunk(std::string_view data) {
  if (data != "[DONE]") return read_piece(data, "delta");
  AnswerPiece piece;
  piece.done = true;
  return piece;
}

AnswerPiece read_completion(std::string_view body) { return read_piece(body, "message"); }

}  // namespace flotilla::api
