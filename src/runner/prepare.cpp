#include "runner/prepare.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/random.h"

namespace flotilla::runner {
namespace {

Result<void> check_model(const api::ChatRequest& request, const CallHeaders& headers,
                         const TextTools& tools) {
  // The gateway has chosen this runner by its own rules.
  if (headers.protocol || request.model == tools.alias) return {};
  return fail(unknown_model(request.model, tools));
}

Result<void> check_logit_bias(const api::ChatRequest& request, const TextTools& tools) {
  for (const auto& [token, bias] : request.logit_bias) {
    if (token >= 0 && token < tools.info.vocabulary) continue;
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("logit_bias has token {}; this model's are 0 to {}", token,
                                        tools.info.vocabulary - 1),
                 .param = "logit_bias"});
  }
  return {};
}

std::vector<engine::ChatMessage> to_engine(const std::vector<api::ChatMessage>& messages) {
  std::vector<engine::ChatMessage> out;
  out.reserve(messages.size());
  for (const api::ChatMessage& message : messages) {
    engine::ChatMessage& to = out.emplace_back();
    to.role = message.role;
    to.content = message.content;
    to.reasoning_content = message.reasoning_content;
    to.name = message.name;
    to.tool_call_id = message.tool_call_id;
    for (const api::ChatToolCall& call : message.tool_calls) {
      to.tool_calls.push_back({.id = call.id, .name = call.name, .arguments = call.arguments});
    }
  }
  return out;
}

engine::ToolUse use_of(api::ToolChoice choice) {
  switch (choice) {
    case api::ToolChoice::Auto: return engine::ToolUse::Free;
    case api::ToolChoice::Required: return engine::ToolUse::Required;
    case api::ToolChoice::None: return engine::ToolUse::None;
  }
  return engine::ToolUse::Free;
}

engine::ChatPromptOptions options_of(const api::ChatRequest& request) {
  engine::ChatPromptOptions options;
  options.continue_final_message = request.continue_final_message;
  options.add_generation_prompt = !request.continue_final_message;
  options.enable_thinking = request.enable_thinking;
  options.template_kwargs = request.template_kwargs;
  for (const api::ChatTool& tool : request.tools) {
    options.tools.push_back({.name = tool.name,
                             .description = tool.description,
                             .parameters = tool.parameters,
                             .guide = tool.guide});
  }
  options.tool_use = use_of(request.tool_choice);
  options.parallel_tool_calls = request.parallel_tool_calls;
  options.answer_schema = request.answer_schema;
  options.grammar = request.grammar;
  return options;
}

Result<engine::RenderedChat> render(const api::ChatRequest& request, const TextTools& tools) {
  // Text that could not fit if each token were the longest one is refused before it costs time.
  std::size_t bytes = 0;
  for (const api::ChatMessage& message : request.messages) bytes += message.content.size();
  for (const api::ChatTool& tool : request.tools) bytes += tool.parameters.size();
  // So is what has more messages than the context has tokens: a turn begins with one at least.
  const std::size_t least = std::max(bytes / tools.piece_bytes_max, request.messages.size());
  const auto context = static_cast<std::size_t>(tools.info.context);
  if (least >= context)
    return fail(over_context(tools, fmt::format("at least {}", least), "messages"));

  if (request.continue_final_message && request.messages.back().role != "assistant") {
    return fail(
        {.code = Code::InvalidArgument,
         .message = fmt::format("continue_final_message is true, but the last message's role is "
                                "\"{}\"; it must be \"assistant\"",
                                request.messages.back().role),
         .param = "continue_final_message"});
  }
  const auto messages = to_engine(request.messages);
  auto chat = tools.chat_template->render(messages, options_of(request));
  if (!chat) return chat;
  if (chat->prompt.empty()) {
    return fail({.code = Code::InvalidArgument,
                 .message = "the messages give an empty prompt; send some text",
                 .param = "messages"});
  }
  if (chat->prompt.size() >= context) {
    return fail(over_context(tools, std::to_string(chat->prompt.size()), "messages"));
  }
  return chat;
}

// A choice's own grammar, as far as its given tokens lead.
Result<std::unique_ptr<engine::Grammar>> make_grammar(const engine::GrammarSpec& spec,
                                                      const AnswerSpec& answer,
                                                      const TextTools& tools) {
  if (!tools.grammars) {
    return fail(Code::InvalidArgument,
                "this engine cannot hold an answer to tools, response_format or grammar");
  }
  auto grammar = tools.grammars->make(spec);
  if (!grammar) return grammar;
  for (const engine::Token token : answer.given) (*grammar)->accept(token);
  return grammar;
}

Result<void> shape_answers(PreparedChat& out, const engine::RenderedChat& chat,
                           const std::string& request_id, const TextTools& tools) {
  for (std::size_t i = 0; i < out.answers.size(); ++i) {
    const AnswerSpec& answer = out.answers[i];
    if (!chat.grammar.rules.empty()) {
      auto grammar = make_grammar(chat.grammar, answer, tools);
      if (!grammar) return fail(grammar.error());
      out.grammars.push_back(std::move(*grammar));
    }
    if (!chat.parser) continue;
    const auto deltas =
        std::make_shared<MessageDeltas>(chat.parser, fmt::format("{}/{}", request_id, i));
    if (!answer.given.empty()) deltas->take(given_text(answer, *tools.tokenizer), false);
    out.deltas.push_back(deltas);
  }
  return {};
}

// The field that holds an answer to a form; empty: none does.
std::string shaped_by(const api::ChatRequest& request) {
  if (!request.tools.empty()) return "tools";
  if (!request.answer_schema.empty()) return "response_format";
  return request.grammar.empty() ? "" : "grammar";
}

// The template's prompt; or, of a text completion, prompts that no template touches.
Result<engine::RenderedChat> render_either(PreparedChat& out, const TextTools& tools) {
  if (out.request.raw.prompts.empty()) return render(out.request, tools);
  if (!shaped_by(out.request).empty()) {
    return fail({.code = Code::InvalidArgument,
                 .message = "a text completion takes no tools, response_format or grammar; use "
                            "/v1/chat/completions",
                 .param = shaped_by(out.request),
                 .reason = "unsupported_parameter"});
  }
  auto raw = make_raw_prompts(out.request.raw, tools);
  if (!raw) return fail(raw.error());
  out.raw = std::move(*raw);
  return engine::RenderedChat{};
}

engine::SamplingParams sampling_of(const api::ChatRequest& request) {
  engine::SamplingParams params;
  params.temperature = static_cast<float>(request.temperature);
  params.top_p = static_cast<float>(request.top_p);
  params.top_k = request.top_k;
  params.min_p = static_cast<float>(request.min_p);
  params.presence_penalty = static_cast<float>(request.presence_penalty);
  params.frequency_penalty = static_cast<float>(request.frequency_penalty);
  params.repetition_penalty = static_cast<float>(request.repetition_penalty);
  params.logit_bias = request.logit_bias;
  params.ignore_eos = request.ignore_eos;
  return params;
}

ThoughtBudget thoughts_of(const api::ChatRequest& request, const engine::RenderedChat& chat,
                          const TextTools& tools) {
  ThoughtBudget budget;
  if (!request.thinking_budget || chat.thoughts_start.empty() || chat.thoughts_end.empty())
    return budget;
  budget.tokens = *request.thinking_budget;
  budget.start = chat.thoughts_start;
  budget.end = chat.thoughts_end;
  budget.ends = tools.tokenizer->tokenize(chat.thoughts_end, false, true);
  budget.begun = chat.thinks;
  return budget;
}

// The first choice draws by the seed itself, so that it is the answer of a request with n = 1.
std::uint64_t seed_of_choice(std::uint64_t seed, int choice) {
  if (choice == 0) return seed;
  Random mixed(seed + static_cast<std::uint64_t>(choice));
  return mixed.next();
}

Result<void> check_resume(const PreparedChat& chat, int context) {
  for (const int choice : chat.resume.finished) {
    if (choice >= chat.request.n) {
      return fail(Code::InvalidArgument, fmt::format("resume: choice {} is finished, but n is {}",
                                                     choice, chat.request.n));
    }
  }
  for (const auto& [choice, ids] : chat.resume.tokens) {
    if (choice >= chat.request.n) {
      return fail(Code::InvalidArgument,
                  fmt::format("resume: there is a choice {}, but n is {}", choice, chat.request.n));
    }
    const auto room = static_cast<std::size_t>(context) - chat.prompt_of(choice).size();
    if (ids.size() > room) {
      return fail(Code::InvalidArgument,
                  fmt::format("resume: choice {} has {} tokens, but the context has room for {}",
                              choice, ids.size(), room));
    }
  }
  return {};
}

}  // namespace

Error unknown_model(std::string_view model, const TextTools& tools) {
  return Error{.code = Code::NotFound,
               .message = fmt::format("model \"{}\" is not here; this runner serves \"{}\"",
                                      model.substr(0, 200), tools.alias),
               .param = "model",
               .reason = "model_not_found"};
}

const std::vector<engine::Token>& PreparedChat::prompt_of(int choice) const {
  return raw.empty() ? prompt : raw[static_cast<std::size_t>(choice / request.raw.each)].tokens;
}

bool PreparedChat::is_first(int choice) const {
  return raw.empty() ? choice == 0 : choice % request.raw.each == 0;
}

std::string_view PreparedChat::echo_of(int choice) const {
  if (raw.empty() || !request.raw.echo) return {};
  return raw[static_cast<std::size_t>(choice / request.raw.each)].text;
}

std::size_t PreparedChat::prompt_tokens() const {
  std::size_t tokens = prompt.size();
  for (const RawPrompt& one : raw) tokens += one.tokens.size();
  return tokens;
}

TextTools make_text_tools(const engine::LoadedModel& model, std::string alias) {
  TextTools tools{.tokenizer = model.tokenizer,
                  .chat_template = model.chat_template,
                  .grammars = model.grammars,
                  .info = model.engine->info(),
                  .alias = std::move(alias)};
  for (engine::Token token = 0; token < tools.tokenizer->vocabulary(); ++token) {
    tools.piece_bytes_max = std::max(tools.piece_bytes_max, tools.tokenizer->piece(token).size());
  }
  return tools;
}

Result<PreparedChat> prepare_chat(const std::string& body, const CallHeaders& headers,
                                  const TextTools& tools, std::uint64_t random,
                                  const std::function<void()>& compiles) {
  if (headers.resume_bytes > body.size()) {
    return fail(Code::InvalidArgument,
                fmt::format("{} is {}, but the body has {} bytes", api::kHeaderResumeBytes,
                            headers.resume_bytes, body.size()));
  }
  const std::string_view text(body);
  PreparedChat out;
  auto request = api::parse_chat_request(text.substr(headers.resume_bytes));
  if (!request) return fail(request.error());
  out.request = std::move(*request);
  if (const auto right = check_model(out.request, headers, tools); !right)
    return fail(right.error());
  if (!tools.info.generates_text) {
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("\"{}\" ({}) was made for vectors and generates no text; "
                                        "ask it at /v1/embeddings",
                                        out.request.model, tools.info.description),
                 .param = "model",
                 .reason = "text_not_supported"});
  }
  if (const auto right = check_logit_bias(out.request, tools); !right) return fail(right.error());
  if (!shaped_by(out.request).empty()) compiles();
  auto chat = render_either(out, tools);
  if (!chat) return fail(chat.error());
  out.prompt = std::move(chat->prompt);
  if (headers.resume_bytes > 0) {
    auto resume = api::parse_resume(text.substr(0, headers.resume_bytes), tools.info.vocabulary);
    if (!resume) return fail(resume.error());
    out.resume = std::move(*resume);
    if (const auto right = check_resume(out, tools.info.context); !right)
      return fail(right.error());
  }
  const std::uint64_t seed = out.request.seed.value_or(headers.seed.value_or(random));
  for (int choice = 0; choice < out.request.n; ++choice) {
    const int room = tools.info.context - static_cast<int>(out.prompt_of(choice).size());
    AnswerSpec& answer = out.answers.emplace_back();
    answer.sampling = sampling_of(out.request);
    const int of_its_prompt = out.raw.empty() ? choice : choice % out.request.raw.each;
    answer.sampling.seed = seed_of_choice(seed, of_its_prompt);
    answer.stops = out.request.stop;
    answer.stops.insert(answer.stops.end(), chat->stops.begin(), chat->stops.end());
    answer.top_logprobs = out.request.top_logprobs;
    answer.shown_controls = chat->grammar.shown_controls;
    answer.thoughts = thoughts_of(out.request, *chat, tools);
    answer.tokens_max = std::min(out.request.max_tokens.value_or(room), room);
    if (const auto given = out.resume.tokens.find(choice); given != out.resume.tokens.end()) {
      answer.given = given->second;
    }
  }
  const auto shaped = shape_answers(out, *chat, headers.request_id, tools);
  if (!shaped) return fail(shaped.error());
  return out;
}

}  // namespace flotilla::runner
