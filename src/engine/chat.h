#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/grammar.h"

// From messages to a prompt, and from an answer's text back to a message.
namespace flotilla::engine {

struct ToolCall {
  std::string id = {};
  std::string name = {};
  std::string arguments = {};  // JSON text
};

struct ChatMessage {
  std::string role = {};  // system, user, assistant, tool
  std::string content = {};
  std::string reasoning_content = {};
  std::string name = {};  // of the tool, where role is tool
  std::string tool_call_id = {};
  std::vector<ToolCall> tool_calls = {};
};

struct ChatTool {
  std::string name = {};
  std::string description = {};
  std::string parameters = {};  // JSON schema, as the model reads it
  std::string guide = {};       // JSON schema that its arguments follow: what the grammar can hold
};

enum class ToolUse { Free, Required, None };

struct ChatPromptOptions {
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool enable_thinking = true;
  std::vector<std::pair<std::string, std::string>> template_kwargs = {};  // name, JSON text
  std::vector<ChatTool> tools = {};
  ToolUse tool_use = ToolUse::Free;
  std::optional<bool> parallel_tool_calls = {};  // absent: as the model is used to
  std::string answer_schema = {};                // JSON schema of the whole answer; empty: none
  std::string grammar = {};                      // GBNF of the whole answer; empty: none
};

struct ParsedAnswer {
  std::string content = {};
  std::string reasoning_content = {};
  std::vector<ToolCall> tool_calls = {};  // without ids where the model writes none
};

// How the text of an answer becomes a message. Immutable; any thread.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;

  // `whole`: nothing follows. Never fails: what a model wrote in no known form is content.
  virtual ParsedAnswer parse(std::string_view text, bool whole) const = 0;
};

struct RenderedChat {
  std::vector<Token> prompt = {};
  GrammarSpec grammar = {};
  std::shared_ptr<const AnswerParser> parser = {};  // null: the text is the content
  std::vector<std::string> stops = {};              // the template's own
  // Marks around what the model thinks before it answers; empty: it does not.
  std::string thoughts_start = {};
  std::string thoughts_end = {};
  bool thinks = false;  // the prompt ends within its thoughts
};

// Messages -> prompt. Immutable after load; any thread.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  // Text in messages and tools never becomes a control token in the prompt. InvalidArgument when
  // the template refuses the messages (its own words in the message), or something cannot be
  // guided.
  virtual Result<RenderedChat> render(std::span<const ChatMessage> messages,
                                      const ChatPromptOptions& options) const = 0;
};

}  // namespace flotilla::engine
