#include "engine/chat_template.h"

#include <algorithm>
#include <chat.h>
#include <json-schema-to-grammar.h>
#include <json.h>

#include <fmt/format.h>

#include "engine/answer_parser.h"
#include "engine/control_texts.h"
#include "engine/either_rules.h"
#include "engine/late_systems.h"
#include "engine/marked_rules.h"
#include "engine/plain_tools.h"
#include "engine/stand_ins.h"
#include "engine/template_habits.h"
#include "engine/tokenizer.h"

namespace flotilla::engine {
namespace {

constexpr int kJsonDepthMax =
    64;  // the template engine recurses; a deeper text would end the stack

constexpr std::string_view kRoot = "root ::= ";

int json_depth(std::string_view json) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

common_chat_msg to_common(const ChatMessage& message) {
  common_chat_msg out;
  out.role = message.role;
  out.content = message.content;
  out.reasoning_content = message.reasoning_content;
  out.tool_name = message.name;
  out.tool_call_id = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls) {
    out.tool_calls.push_back({call.name, call.arguments, call.id});
  }
  return out;
}

void hide_typed(common_chat_msg& message, StandIns& hidden) {
  for (std::string* text : {&message.role, &message.content, &message.reasoning_content,
                            &message.tool_name, &message.tool_call_id}) {
    *text = hidden.hide(*text);
  }
  for (common_chat_tool_call& call : message.tool_calls) {
    call = {hidden.hide(call.name), hidden.hide_json(call.arguments), hidden.hide(call.id)};
  }
}

std::vector<common_chat_tool> tools_of(const ChatPromptOptions& options,
                                       std::string ChatTool::* schema) {
  std::vector<common_chat_tool> out;
  for (const ChatTool& tool : options.tools) {
    out.push_back({tool.name, tool.description, tool.*schema});
  }
  return out;
}

common_chat_tool_choice choice_of(ToolUse use) {
  switch (use) {
    case ToolUse::Free: return COMMON_CHAT_TOOL_CHOICE_AUTO;
    case ToolUse::Required: return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    case ToolUse::None: return COMMON_CHAT_TOOL_CHOICE_NONE;
  }
  return COMMON_CHAT_TOOL_CHOICE_AUTO;
}

bool too_deep(std::span<const ChatMessage> messages, const ChatPromptOptions& options) {
  const auto deep = [](const std::string& json) { return json_depth(json) > kJsonDepthMax; };
  return std::ranges::any_of(options.template_kwargs,
                             [&](const auto& kwarg) { return deep(kwarg.second); }) ||
         std::ranges::any_of(messages, [&](const ChatMessage& message) {
           return std::ranges::any_of(message.tool_calls, deep, &ToolCall::arguments);
         });
}

// Where each call has marks of its own, llama-common lets there be several whatever was asked.
void keep_one_call(std::string& rules) {
  constexpr std::string_view kSeveral = "root ::= tool-call | tool-calls\n";
  const std::size_t at = rules.find(kSeveral);
  if (at != rules.npos) rules.replace(at, kSeveral.size(), "root ::= tool-call\n");
}

// Where the rule "root" stands in rules, its line's end included; empty: nowhere.
std::string_view root_of(std::string_view rules) {
  std::size_t at = rules.starts_with(kRoot) ? 0 : rules.find("\nroot ::= ");
  if (at == rules.npos) return {};
  if (at > 0) ++at;
  return rules.substr(at, rules.find('\n', at) - at + 1);
}

bool has_rule(std::string_view rules, std::string_view name) {
  const std::string begin = fmt::format("{} ::= ", name);
  return rules.starts_with(begin) || rules.find('\n' + begin) != rules.npos;
}

// Lets `rules` begin as `others` do: with one of several rules, each of which they have, too.
// Whether they have.
bool begin_with_root_of(std::string_view others, std::string& rules) {
  const std::string_view root = root_of(others);
  const std::string_view own = root_of(rules);
  if (root.empty() || own.empty()) return false;
  std::string_view names = root.substr(kRoot.size(), root.find('\n') - kRoot.size());
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(" | "));
    if (!has_rule(rules, name)) return false;
    names.remove_prefix(std::min(names.size(), name.size() + 3));
  }
  rules.replace(static_cast<std::size_t>(own.data() - rules.data()), own.size(), root);
  return true;
}

// A template that closes thoughts at once may leave out the line break that a mark begins with.
std::string_view without_blanks(std::string_view mark) {
  const std::size_t first = std::min(mark.find_first_not_of(" \t\r\n"), mark.size());
  return mark.substr(first, mark.find_last_not_of(" \t\r\n") + 1 - first);
}

bool may_call(const ChatPromptOptions& options) {
  return !options.tools.empty() && options.tool_use != ToolUse::None;
}

class LlamaChatTemplate final : public ChatTemplate {
 public:
  LlamaChatTemplate(ModelHandle model, common_chat_templates_ptr templates)
      : model_(std::move(model)),
        vocab_(llama_model_get_vocab(model_.get())),
        tokenizer_(make_llama_tokenizer(model_)),
        templates_(std::move(templates)),
        shows_late_systems_(shows_late_systems(templates_.get())),
        knows_tools_(knows_tools(templates_.get())),
        leaves_calls_out_(leaves_calls_out(templates_.get())),
        parallel_(common_chat_templates_get_caps(templates_.get())["supports_parallel_tool_calls"]),
        controls_(control_forms(vocab_)) {}

  Result<RenderedChat> render(std::span<const ChatMessage> messages,
                              const ChatPromptOptions& options) const override {
    if (too_deep(messages, options)) {
      return fail(Code::InvalidArgument,
                  fmt::format("tool call arguments and template arguments may nest {} levels deep",
                              kJsonDepthMax));
    }
    StandIns hidden(controls_);
    common_chat_templates_inputs inputs;
    std::string prompt;
    common_chat_params form;
    try {
      inputs = inputs_of(messages, options, hidden);
      form = common_chat_templates_apply(templates_.get(), inputs);
      prompt = form.prompt;
    } catch (const std::exception& e) {
      return fail(Code::InvalidArgument,
                  fmt::format("the chat template refuses the messages: {}", e.what()));
    }
    RenderedChat chat;
    chat.prompt = tokenize(hidden, prompt);
    take_thoughts(form, chat);
    try {
      if (auto guided = guide(options, std::move(inputs), form, chat); !guided) {
        return fail(guided.error());
      }
    } catch (const std::exception& e) {
      return fail(Code::InvalidArgument,
                  fmt::format("the answer cannot be guided as asked: {}", e.what()));
    }
    return chat;
  }

 private:
  // Tokens that tokenize(parse_special=false) leaves as text. (A vocabulary's "user defined"
  // tokens, like <think> of some models, are words of the model to it, also when typed.)
  static std::vector<std::string> control_forms(const llama_vocab* vocab) {
    std::vector<std::string> forms;
    for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
      const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocab, token));
      if ((attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0) {
        forms.emplace_back(llama_vocab_get_text(vocab, token));
      }
    }
    return forms;
  }

  common_chat_templates_inputs inputs_of(std::span<const ChatMessage> messages,
                                         const ChatPromptOptions& options, StandIns& hidden) const {
    common_chat_templates_inputs inputs;
    std::vector<ChatMessage> in_turns;
    if (!shows_late_systems_) messages = in_turns = put_late_systems_in_turns(messages);
    for (const ChatMessage& message : messages) inputs.messages.push_back(to_common(message));
    if (knows_tools_) {
      inputs.tools = tools_of(options, &ChatTool::parameters);
      for (common_chat_tool& tool : inputs.tools) {
        tool = {hidden.hide(tool.name), hidden.hide(tool.description),
                hidden.hide_json(tool.parameters)};
      }
    } else if (may_call(options)) {
      inputs.messages = write_out_tools(inputs.messages, tools_of(options, &ChatTool::parameters));
    }
    for (common_chat_msg& message : inputs.messages) {
      hide_typed(message, hidden);
      if (leaves_calls_out_) write_out_calls(message);
    }
    inputs.tool_choice = choice_of(options.tool_use);
    inputs.parallel_tool_calls = options.parallel_tool_calls.value_or(parallel_);
    inputs.add_generation_prompt = options.add_generation_prompt;
    if (options.continue_final_message) {
      inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
    }
    inputs.enable_thinking = options.enable_thinking;
    inputs.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
    for (const auto& [name, json] : options.template_kwargs) {
      inputs.chat_template_kwargs[name] = hidden.hide_json(json);
    }
    return inputs;
  }

  // What holds the answer to what was asked, and what reads it. `form` is of the prompt; tools are
  // applied once more, by what their users typed and by schemas that can be held.
  Result<void> guide(const ChatPromptOptions& options, common_chat_templates_inputs inputs,
                     common_chat_params& form, RenderedChat& chat) const {
    const bool calls = may_call(options);
    const bool required = options.tool_use == ToolUse::Required;
    if (calls) {
      const auto tools = tools_of(options, &ChatTool::guide);
      if (knows_tools_) {
        inputs.tools = tools;
        form = common_chat_templates_apply(templates_.get(), inputs);
      } else {
        parse_plain_tools(form, tools, required, options.parallel_tool_calls.value_or(false));
      }
    }
    const bool thinks = form.supports_thinking || !form.thinking_start_tag.empty();
    const bool one_call = calls && options.parallel_tool_calls == false;
    chat.stops = form.additional_stops;
    chat.grammar.shown_controls = controls_among(form.preserved_tokens);
    if (calls) take_grammar(form, chat.grammar);
    if (calls && required && knows_tools_ && !(thinks && options.enable_thinking)) {
      call_at_once(inputs, chat.grammar);
    }
    if (one_call) keep_one_call(chat.grammar.rules);
    if (!options.grammar.empty()) {
      chat.grammar.rules = options.grammar;
      chat.grammar.by_hand = true;
    }
    if (!options.answer_schema.empty() && !(calls && required)) {
      if (calls && thinks) {
        return fail({.code = Code::InvalidArgument,
                     .message =
                         "response_format cannot be combined with tools on this model, which "
                         "thinks before it answers; use one of them",
                     .param = "response_format"});
      }
      if (thinks) {
        inputs.json_schema = options.answer_schema;
        common_chat_params thinking = common_chat_templates_apply(templates_.get(), inputs);
        if (!thinking.grammar.empty()) {
          form = std::move(thinking);
          take_grammar(form, chat.grammar);
        }
      }
      // Also where llama-common knows no form that begins with thoughts: then there are none.
      if (!thinks || chat.grammar.rules.empty()) {
        GrammarSpec answer;
        answer.rules =
            reveal_marked_rules(json_schema_to_grammar(common_json::parse(options.answer_schema)));
        answer.shown_controls = chat.grammar.shown_controls;
        if (calls) answer.rules = either_rules(answer.rules, chat.grammar.rules);
        chat.grammar = std::move(answer);
        if (!calls) return {};
      }
    }
    if (calls || thinks || !shows_as_written(form)) {
      chat.parser = make_answer_parser(form, {.one_call = one_call, .thinks = chat.thinks});
    }
    return {};
  }

  // llama-common lets a model talk before a call that it has to make, and a weak one may not come
  // to an end. A free choice's rules begin with the call, but of many families they let there be
  // none: from where those begin, `spec`'s own rules hold.
  void call_at_once(common_chat_templates_inputs inputs, GrammarSpec& spec) const {
    inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_AUTO;
    const common_chat_params free = common_chat_templates_apply(templates_.get(), inputs);
    const bool from_a_word =
        free.grammar_lazy && std::ranges::all_of(free.grammar_triggers, [](const auto& trigger) {
          return trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD;
        });
    if (from_a_word && begin_with_root_of(free.grammar, spec.rules)) spec.begun.clear();
  }

  static void take_grammar(const common_chat_params& form, GrammarSpec& spec) {
    spec.rules = reveal_marked_rules(form.grammar);
    spec.begun = form.generation_prompt;
    if (!form.grammar_lazy) return;
    for (const common_grammar_trigger& trigger : form.grammar_triggers) {
      auto& to = trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD ? spec.trigger_words
                                                                  : spec.trigger_patterns;
      to.push_back(trigger.value);
    }
    spec.reasoning_start = form.thinking_start_tag;
    spec.reasoning_ends = form.thinking_end_tags;
  }

  static void take_thoughts(const common_chat_params& form, RenderedChat& chat) {
    if (form.thinking_end_tags.empty()) return;
    chat.thoughts_start = form.thinking_start_tag;
    chat.thoughts_end = form.thinking_end_tags.front();
    const std::size_t start = form.generation_prompt.rfind(chat.thoughts_start);
    const std::size_t end = form.generation_prompt.rfind(without_blanks(chat.thoughts_end));
    chat.thinks = !chat.thoughts_start.empty() && start != std::string::npos &&
                  (end == std::string::npos || end < start);
  }

  std::vector<Token> controls_among(const std::vector<std::string>& words) const {
    std::vector<Token> tokens;
    for (const std::string& word : words) {
      const std::vector<Token> ids = tokenizer_->tokenize(word, false, true);
      if (ids.size() == 1 && !tokenizer_->ends_generation(ids[0])) tokens.push_back(ids[0]);
    }
    return tokens;
  }

  std::vector<Token> tokenize(const StandIns& hidden, const std::string& prompt) const {
    // As a whole in the usual case: words that meet at a seam become the same tokens as with any
    // other server of this model.
    if (!hidden.any()) return tokenizer_->tokenize(prompt, true, true);
    std::vector<Token> tokens;
    if (llama_vocab_get_add_bos(vocab_)) tokens.push_back(llama_vocab_bos(vocab_));
    for (const TextPart& part : hidden.reveal(prompt)) {
      const std::vector<Token> more = tokenizer_->tokenize(part.text, false, !part.control);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
    if (llama_vocab_get_add_eos(vocab_)) tokens.push_back(llama_vocab_eos(vocab_));
    return tokens;
  }

  const ModelHandle model_;
  const llama_vocab* const vocab_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const common_chat_templates_ptr templates_;
  const bool shows_late_systems_;
  const bool knows_tools_;       // else we describe and read them
  const bool leaves_calls_out_;  // of earlier turns
  const bool parallel_;          // the template shows several calls in one turn
  const ControlTexts controls_;
};

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> make_llama_chat_template(const ModelHandle& model,
                                                                     const std::string& source) {
  const char* own = llama_model_chat_template(model.get(), nullptr);
  if (source.empty() && own == nullptr) {
    return fail(Code::InvalidArgument,
                "the model has no chat template: it is not made for chat; give one with "
                "--chat-template if it is");
  }
  try {
    // Parsed once more than needed: the library's own call loses the reason of a failure.
    (void)common_chat_template(source.empty() ? own : source, "", "");
    return std::make_shared<LlamaChatTemplate>(model,
                                               common_chat_templates_init(model.get(), source));
  } catch (const std::exception& e) {
    return fail(Code::InvalidArgument, fmt::format("the chat template is broken: {}", e.what()));
  }
}

}  // namespace flotilla::engine
