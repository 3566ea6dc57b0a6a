#include "api/engine_template.h"

#include <algorithm>

#include <fmt/format.h>

namespace flotilla::api {
namespace {

// The value of a place; nullopt: there is no such place, and the text stays. Empty: not set.
std::optional<std::string> value_of(std::string_view place, const EngineValues& values) {
  const auto number = [](int value) { return value == 0 ? std::string() : std::to_string(value); };
  if (place == "alias") return values.alias;
  if (place == "batch_size") return number(values.batch_size);
  if (place == "prefill_batch") return number(values.prefill_batch);
  if (place == "context") return number(values.context);
  if (place == "window") return number(values.window);
  if (place == "threads") return number(values.threads);
  return std::nullopt;
}

// Each {place} once, from left to right: what a value says is never read again.
template <class ValueOf>
std::string fill(std::string_view text, const ValueOf& find) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('{');
    const auto close = open == text.npos ? text.npos : text.find('}', open);
    if (close == text.npos) break;
    const auto value = find(text.substr(open + 1, close - open - 1));
    out += text.substr(0, value ? open : close + 1);
    if (value) out += *value;
    text.remove_prefix(close + 1);
  }
  return out.append(text);
}

// nullopt: a value in it is not set.
std::optional<std::string> fill_known(std::string_view text, const EngineValues& values) {
  bool whole = true;
  std::string out = fill(text, [&](std::string_view place) {
    auto value = value_of(place, values);
    if (value && value->empty()) whole = false;
    return value;
  });
  return whole ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

EngineSpec fill_template(const EngineTemplate& engine, const EngineValues& values) {
  EngineSpec out{.name = engine.name,
                 .command = {},
                 .env = {},
                 .cwd = engine.cwd,
                 .model_by_name = engine.model_by_name,
                 .folders_only = false};
  for (const auto& part : engine.command) {
    std::vector<std::string> words;
    for (const std::string& word : part)
      if (auto filled = fill_known(word, values)) words.push_back(std::move(*filled));
    if (words.size() == part.size())
      out.command.insert(out.command.end(), words.begin(), words.end());
  }
  for (const auto& [name, text] : engine.env)
    if (auto filled = fill_known(text, values)) out.env[name] = std::move(*filled);
  return out;
}

std::string fill_text(std::string_view text, const EngineValues& values) {
  return fill(text, [&](std::string_view place) {
    return place == "model" ? std::optional(values.model) : value_of(place, values);
  });
}

std::string fill_place(std::string_view word, std::string_view model, int port) {
  return fill(word, [&](std::string_view place) -> std::optional<std::string> {
    if (place == "model") return std::string(model);
    if (place == "port") return std::to_string(port);
    return std::nullopt;
  });
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

const std::vector<EngineTemplate>& shipped_engines() {
  static const std::vector<EngineTemplate> engines = {
      // Any model but default_model makes it drop the one that it has loaded, and a seed makes it
      // answer one request at a time: only a client that sent one gets that.
      {.name = "mlx",
       .command = {{"mlx_lm.server"},
                   {"--model", "{model}"},
                   {"--host", "127.0.0.1"},
                   {"--port", "{port}"},
                   {"--decode-concurrency", "{batch_size}"},
                   {"--prompt-concurrency", "{prefill_batch}"},
                   {"--allowed-origins="}},
       .body_model = "default_model",
       .lacks = {"n", "logprobs", "response_format", "tool_choice", "parallel_tool_calls",
                 "grammar", "ignore_eos", "continue_final_message", "reasoning_effort"}},
      {.name = "vllm",
       .command = {{"vllm", "serve", "{model}"},
                   {"--host", "127.0.0.1"},
                   {"--port", "{port}"},
                   {"--served-model-name", "{alias}"},
                   {"--max-num-seqs", "{batch_size}"},
                   {"--max-model-len", "{context}"},
                   {"--allowed-origins", "[]"},
                   {"--enable-prompt-tokens-details"}},
       .salts_cache = true,
       // Tools need --enable-auto-tool-choice and a parser of the model's family.
       .lacks = {"tools", "grammar"}},
      {.name = "llama-server",
       .command = {{"llama-server"},
                   {"-m", "{model}"},
                   {"--host", "127.0.0.1"},
                   {"--port", "{port}"},
                   {"--alias", "{alias}"},
                   {"-np", "{batch_size}"},
                   {"--kv-unified"},
                   {"-c", "{window}"},
                   {"-t", "{threads}"},
                   {"--cors-origins", "localhost"},
                   {"--no-webui"}},
       .lacks = {"repetition_penalty"}},
      // It lists its models by name, and unloads one that rests unless it is told not to.
      {.name = "ollama",
       .command = {{"ollama", "serve"}},
       .env = {{"OLLAMA_HOST", "127.0.0.1:{port}"},
               {"OLLAMA_NUM_PARALLEL", "{batch_size}"},
               {"OLLAMA_CONTEXT_LENGTH", "{context}"},
               {"OLLAMA_KEEP_ALIVE", "-1"}},
       .body_model = "{model}",
       .health = "/api/version",
       .model_by_name = true,
       .lacks = {"n", "logit_bias", "tool_choice", "parallel_tool_calls", "grammar", "ignore_eos",
                 "continue_final_message", "top_k", "min_p", "repetition_penalty",
                 "chat_template_kwargs", "enable_thinking"}},
  };
  return engines;
}

const EngineTemplate* find_engine(const std::vector<EngineTemplate>& engines,
                                  std::string_view name) {
  const auto found = std::ranges::find(engines, name, &EngineTemplate::name);
  return found == engines.end() ? nullptr : &*found;
}

std::string_view engine_for_folders(std::string_view platform) {
  return platform.starts_with("macos") || platform.starts_with("darwin") ? "mlx" : "vllm";
}

std::string how_to_configure(std::string_view name) {
  if (find_engine(shipped_engines(), name) != nullptr) {
    return fmt::format(
        "put `engines: {{{}: {{}}}}` into flotilla.yaml on the gateway's host (with `program:` "
        "where it is not in the agent's PATH) and start flotilla serve anew",
        name);
  }
  return fmt::format(
      "describe it in flotilla.yaml on the gateway's host (engines: {{{}: {{command: [...]}}}}) "
      "and "
      "start flotilla serve anew",
      name);
}

}  // namespace flotilla::api
