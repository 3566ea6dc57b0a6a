#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// POST /tokenize and /detokenize, in llama-server's words and vLLM's, and the count of a prompt.
// Unknown fields are accepted.
namespace flotilla::api {

struct TokenizeRequest {
  std::string model;           // may be left out where one alone is there
  std::string text;            // "content" or "prompt"
  bool messages = false;       // instead: the body is a chat request whose prompt is asked for
  bool add_special = false;    // the model's own beginning; vLLM's name for it defaults to true
  bool parse_special = false;  // control tokens written out in the text are control tokens
  bool pieces = false;         // each token's text too
};
Result<TokenizeRequest> parse_tokenize(std::string_view body);

struct TokenizeAnswer {
  std::string model;
  std::vector<std::int32_t> tokens;
  std::vector<std::string> pieces;  // empty unless asked for
  int context = 0;
};
// {"model","tokens","count","max_model_len","token_strs"?}
std::string to_json(const TokenizeAnswer& answer);

struct DetokenizeRequest {
  std::string model;
  std::vector<std::int32_t> tokens;  // not range-checked here
};
Result<DetokenizeRequest> parse_detokenize(std::string_view body);
// {"content","prompt"}: the same text by both names.
std::string detokenize_json(std::string_view text);

// What a runner answers to the count of a chat request.
std::string token_count_json(std::size_t prompt_tokens);

// The member `model` of any request's body; empty where there is none.
Result<std::string> read_model_name(std::string_view body);

}  // namespace flotilla::api
