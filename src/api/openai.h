#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/raw_prompts.h"
#include "base/result.h"

// POST /v1/chat/completions as a struct. Unknown fields are accepted, null means unset, known
// fields that are not honoured are refused by name.
namespace flotilla::api {

struct ChatToolCall {
  std::string id, name, arguments;  // arguments: JSON text
};

struct ChatMessage {
  std::string role;     // system, user, assistant, tool (developer reads as system)
  std::string content;  // text parts joined
  std::string reasoning_content;
  std::string name;
  std::string tool_call_id;
  std::vector<ChatToolCall> tool_calls;
};

struct ChatTool {
  std::string name, description;
  std::string parameters;  // JSON schema, as it was sent
  std::string guide;       // the same in words that a grammar can be made of
};

enum class ToolChoice { Auto, Required, None };  // a named one: it is the only tool, and required

struct ChatRequest {
  std::string model;
  std::vector<ChatMessage> messages;  // at least one, but for a text completion
  RawPrompts raw;                     // of a text completion
  bool stream = false;
  bool include_usage = false;
  bool early_usage = false;       // the role chunk has the prompt's count too
  std::optional<int> max_tokens;  // absent: to the edge of the context
  std::vector<std::string> stop;
  int n = 1;

  double temperature = 1;
  double top_p = 1;
  int top_k = 0;
  double min_p = 0;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  double repetition_penalty = 1;
  std::vector<std::pair<std::int32_t, float>> logit_bias;  // token ids, not range-checked here
  std::optional<std::uint64_t> seed;
  bool ignore_eos = false;
  std::optional<int> top_logprobs;  // 0: of the chosen tokens alone

  std::vector<ChatTool> tools;
  ToolChoice tool_choice = ToolChoice::Auto;
  std::optional<bool> parallel_tool_calls;
  std::string answer_schema;  // JSON schema that the answer follows; empty: text
  std::string grammar;        // GBNF that it follows
  bool enable_thinking = true;
  std::optional<int> thinking_budget;  // tokens of what it thinks before it answers
  bool continue_final_message = false;
  std::vector<std::pair<std::string, std::string>> template_kwargs;  // name, JSON text

  std::optional<double> timeout_s;  // of the whole request
  std::string session_id;
  std::string prompt_cache_key;
  std::string user;
};

// InvalidArgument with the field in `param`; TooLarge beyond 32 MiB.
Result<ChatRequest> parse_chat_request(std::string_view body);

}  // namespace flotilla::api
