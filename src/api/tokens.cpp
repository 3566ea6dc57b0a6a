#include "api/tokens.h"

#include <fmt/format.h>

#include "api/json.h"
#include "api/json_text.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kTextMax = 32 << 20;
constexpr std::size_t kTokensMax = 1 << 20;
constexpr std::size_t kNameMax = 512;

}  // namespace

Result<TokenizeRequest> parse_tokenize(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  TokenizeRequest out;
  out.model = in.string("model", kNameMax).value_or("");
  out.messages = in.find("messages") != nullptr;
  const char* name = in.find("content") != nullptr ? "content" : "prompt";
  if (!out.messages) in.require(name, "the text, or messages instead of it");
  out.text = in.string(name, kTextMax).value_or("");
  const auto theirs = in.boolean("add_special_tokens");
  out.add_special = in.boolean("add_special").value_or(theirs.value_or(name[0] == 'p'));
  out.parse_special = in.boolean("parse_special").value_or(false);
  out.pieces =
      in.boolean("with_pieces").value_or(false) || in.boolean("return_token_strs").value_or(false);
  if (fault) return fault.unexpected();
  return out;
}

std::string to_json(const TokenizeAnswer& answer) {
  std::string out = R"({"model":)";
  append_quoted(out, answer.model);
  out += R"(,"tokens":[)";
  for (const std::int32_t token : answer.tokens) {
    if (out.back() != '[') out += ',';
    out += std::to_string(token);
  }
  fmt::format_to(std::back_inserter(out), R"(],"count":{},"max_model_len":{})",
                 answer.tokens.size(), answer.context);
  if (!answer.pieces.empty()) {
    out += R"(,"token_strs":[)";
    for (const std::string& piece : answer.pieces) {
      if (out.back() != '[') out += ',';
      append_quoted(out, piece);
    }
    out += ']';
  }
  return out + '}';
}

Result<DetokenizeRequest> parse_detokenize(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  DetokenizeRequest out;
  out.model = in.string("model", kNameMax).value_or("");
  in.require("tokens", "a list of token ids");
  const json::Array* tokens = in.array("tokens", kTokensMax);
  for (std::size_t i = 0; tokens != nullptr && i < tokens->size() && !fault; ++i) {
    const json::Value& token = (*tokens)[i];
    if (token.is_int64() && token.get_int64() >= INT32_MIN && token.get_int64() <= INT32_MAX) {
      out.tokens.push_back(static_cast<std::int32_t>(token.get_int64()));
    } else {
      const std::string path = json::item_path("tokens", i);
      fault.set(path, fmt::format("{} is {}; it must be a token id", path, json::shown(token)));
    }
  }
  if (fault) return fault.unexpected();
  return out;
}

std::string detokenize_json(std::string_view text) {
  const std::string quoted = json_string(text);
  return fmt::format(R"({{"content":{0},"prompt":{0}}})", quoted);
}

std::string token_count_json(std::size_t prompt_tokens) {
  return fmt::format(R"({{"prompt_tokens":{}}})", prompt_tokens);
}

Result<std::string> read_model_name(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  std::string model = in.string("model", kNameMax).value_or("");
  if (fault) return fault.unexpected();
  return model;
}

}  // namespace flotilla::api
