#include "api/completions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "api/chat_pieces.h"
#include "api/error_body.h"
#include "api/json.h"
#include "api/json_answer.h"
#include "api/json_text.h"
#include "api/raw_prompts.h"

namespace flotilla::api {
namespace {

constexpr int kTokensMaxDefault = 16;  // OpenAI's
constexpr int kLogprobsMax = 5;

void refuse(json::Reader& in, std::string_view name, const std::string& why) {
  in.fault().set(std::string(name), why, "unsupported_parameter");
}

// A text, several, one's tokens, or several's tokens.
json::Array read_prompts(json::Reader& in) {
  in.require("prompt", "a text, a list of texts, or token ids");
  const json::Value* prompt = in.find("prompt");
  if (prompt == nullptr) return {};
  const json::Array* list = prompt->if_array();
  if (prompt->is_string()) return {*prompt};
  if (list == nullptr || list->empty()) {
    in.refuse("prompt", "must be a text, a list of texts, or token ids");
    return {};
  }
  if (list->front().is_number()) return {*prompt};
  return *list;
}

void read_logprobs(json::Reader& in, json::Object& chat) {
  chat.erase("logprobs");
  const auto wanted = in.integer("logprobs", 0, kLogprobsMax);
  if (!wanted) return;
  chat["logprobs"] = true;
  if (*wanted > 0) chat["top_logprobs"] = *wanted;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  return count;
}

struct TokenRead {
  std::string text;
  json::Value logprob;  // null where none is told
};

// Of a token in a chat answer's logprobs; nullopt: it is none. Another engine may have written it.
std::optional<TokenRead> logprob_of(const json::Value& item) {
  const json::Object* object = item.if_object();
  const json::Value* text = object != nullptr ? object->if_contains("token") : nullptr;
  if (text == nullptr || !text->is_string()) return std::nullopt;
  const json::Value* logprob = object->if_contains("logprob");
  return TokenRead{.text = std::string(text->get_string()),
                   .logprob = logprob != nullptr && logprob->is_number() ? *logprob : nullptr};
}

class CompletionAnswer final : public AnswerForm {
 public:
  explicit CompletionAnswer(bool with_usage) : with_usage_(with_usage) {}

  std::string event(std::string_view data) override {
    const AnswerPiece piece = read_chunk(data);
    if (piece.done) return std::string(kSseDone);
    if (piece.error) return openai_error_event(*piece.error);
    std::string choices;
    for (const ChoicePiece& choice : piece.choices) {
      if (choice.content.empty() && choice.finish_reason.empty() && choice.logprobs.empty())
        continue;
      choices += (choices.empty() ? "" : ",") + choice_json(choice);
    }
    if (choices.empty() && !piece.usage) return {};
    return "data: " + object_json(piece, choices, with_usage_) + "\n\n";
  }
  std::string answer(std::string_view completion) override {
    const AnswerPiece piece = read_completion(completion);
    std::string choices;
    for (const ChoicePiece& choice : piece.choices)
      choices += (choices.empty() ? "" : ",") + choice_json(choice);
    return object_json(piece, choices, false);
  }
  std::string error(const Error& error) const override { return openai_error_body(error); }

 private:
  static std::string object_json(const AnswerPiece& piece, const std::string& choices,
                                 bool null_usage) {
    std::string out = fmt::format(
        R"({{"id":{},"object":"text_completion","created":{},"model":{},"choices":[{}])",
        json_string("cmpl-" + piece.id), piece.created, json_string(piece.model), choices);
    if (piece.usage) {
      out += R"(,"usage":)";
      append_usage(out, *piece.usage);
    } else if (null_usage) {
      out += R"(,"usage":null)";
    }
    if (!piece.served.empty()) out += R"(,"x_flotilla":)" + piece.served;
    return out + '}';
  }

  std::string choice_json(const ChoicePiece& choice) {
    return fmt::format(R"({{"index":{},"text":{},"logprobs":{},"finish_reason":{}}})", choice.index,
                       json_string(choice.content), logprobs_json(choice),
                       choice.finish_reason.empty() ? "null" : json_string(choice.finish_reason));
  }

  // Chat's list of tokens as completions' four lists.
  std::string logprobs_json(const ChoicePiece& choice) {
    const auto list = json::parse_answer(choice.logprobs.empty() ? "[]" : choice.logprobs);
    if (choice.logprobs.empty() || !list || !list->is_array()) return "null";
    json::Array tokens;
    json::Array logprobs;
    json::Array tops;
    json::Array offsets;
    for (const json::Value& item : list->get_array()) {
      const auto token = logprob_of(item);
      if (!token) continue;
      tokens.emplace_back(token->text);
      logprobs.emplace_back(token->logprob);
      json::Object top;
      const json::Value* others = item.get_object().if_contains("top_logprobs");
      if (others != nullptr && others->is_array()) {
        for (const json::Value& other : others->get_array())
          if (const auto one = logprob_of(other)) top[one->text] = one->logprob;
      }
      tops.push_back(std::move(top));
      std::size_t& offset = offsets_[choice.index];
      offsets.push_back(offset);
      offset += characters(token->text);
    }
    return json::to_text(json::Object{{"tokens", std::move(tokens)},
                                      {"token_logprobs", std::move(logprobs)},
                                      {"top_logprobs", std::move(tops)},
                                      {"text_offset", std::move(offsets)}});
  }

  const bool with_usage_;
  std::map<int, std::size_t> offsets_;  // by choice, in characters
};

bool asks_for_usage(const json::Object& body) {
  const json::Value* options = body.if_contains("stream_options");
  const json::Value* usage = options != nullptr && options->is_object()
                                 ? options->get_object().if_contains("include_usage")
                                 : nullptr;
  return usage != nullptr && usage->is_bool() && usage->get_bool();
}

bool is_of_completions(std::string_view field) {
  constexpr std::string_view fields[] = {"prompt", "echo", "suffix", "best_of", "messages"};
  return std::ranges::find(fields, field) != std::end(fields);
}

}  // namespace

Result<FormRequest> parse_completion_request(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  json::Object chat;  // most fields are chat's own
  for (const auto& member : *object) {
    if (!is_of_completions(member.key())) chat.insert(member);
  }
  json::Array prompts = read_prompts(in);
  const auto n = in.integer("n", 1, kRawChoicesMax).value_or(1);
  if (n * static_cast<std::int64_t>(prompts.size()) > kRawChoicesMax) {
    fault.set("prompt", fmt::format("{} prompts with n = {} are more than the {} answers that a "
                                    "request may have",
                                    prompts.size(), n, kRawChoicesMax));
  }
  const bool echo = in.boolean("echo").value_or(false);
  read_logprobs(in, chat);
  if (echo && chat.contains("logprobs"))
    refuse(in, "logprobs", "logprobs of an echoed prompt are not supported; leave out one of them");
  if (in.integer("best_of", 1, kRawChoicesMax).value_or(n) > n)
    refuse(in, "best_of", "best_of above n is not supported; leave it out");
  const std::string suffix = in.string("suffix", 32 << 20).value_or("");
  if (in.find("max_tokens") == nullptr && in.find("max_completion_tokens") == nullptr)
    chat["max_tokens"] = kTokensMaxDefault;
  chat["raw"] = json::Object{{"prompts", std::move(prompts)}, {"echo", echo}, {"suffix", suffix}};
  if (fault) return fault.unexpected();
  return FormRequest{.chat = json::to_text(chat),
                     .answer = std::make_unique<CompletionAnswer>(asks_for_usage(*object))};
}

}  // namespace flotilla::api
