#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai.h"
#include "api/runner_protocol.h"
#include "base/result.h"
#include "engine/chat.h"
#include "engine/engine.h"
#include "engine/grammar.h"
#include "runner/answer.h"
#include "runner/call_headers.h"
#include "runner/message_deltas.h"
#include "runner/raw_prompt.h"

namespace flotilla::runner {

// What turns a request into tokens. Immutable: any thread.
struct TextTools {
  std::shared_ptr<const engine::Tokenizer> tokenizer;
  std::shared_ptr<const engine::ChatTemplate> chat_template;
  std::shared_ptr<const engine::GrammarMaker> grammars;  // null: none
  engine::EngineInfo info;
  std::string alias;
  std::size_t piece_bytes_max = 1;  // of the longest token
};

TextTools make_text_tools(const engine::LoadedModel& model, std::string alias);
Error unknown_model(std::string_view model, const TextTools& tools);

// A request that is ready for the scheduler.
struct PreparedChat {
  api::ChatRequest request;
  api::Resume resume;
  std::vector<engine::Token> prompt;
  std::vector<RawPrompt> raw;  // of a text completion; `prompt` is empty then
  // One a choice; that of a finished choice is not used.
  std::vector<AnswerSpec> answers;
  std::vector<std::unique_ptr<engine::Grammar>> grammars;  // none: nothing is prescribed
  // None: the text is the content. They have taken what was given.
  std::vector<std::shared_ptr<MessageDeltas>> deltas;

  const std::vector<engine::Token>& prompt_of(int choice) const;
  bool is_first(int choice) const;             // of those with its prompt
  std::string_view echo_of(int choice) const;  // comes before the choice's own text
  std::size_t prompt_tokens() const;           // of all its prompts
};

// Parses, checks, applies the template, tokenises and compiles: what may be slow, for the text
// pool. `body` is the request's, `headers.resume_bytes` of resumption first. `random`: the seed
// when nobody gave one. `compiles` is called before something that a request's own rules can make
// very slow.
Result<PreparedChat> prepare_chat(
    const std::string& body, const CallHeaders& headers, const TextTools& tools,
    std::uint64_t random, const std::function<void()>& compiles = [] {});

}  // namespace flotilla::runner
