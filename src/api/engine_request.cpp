#include "api/engine_request.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "api/embeddings.h"
#include "api/json.h"
#include "api/json_text.h"
#include "api/openai_body.h"

namespace flotilla::api {
namespace {

std::string_view name_of(const json::Object::value_type& member) {
  return {member.key().data(), member.key().size()};
}

// A client's fields that go on to an engine. Others are unknown to our clients' APIs, and may mean
// to an engine what no client should say: another's slot or cache, a host to fetch from.
struct Field {
  std::string_view name;
  bool refusable;  // by an engine that lacks it
};
constexpr Field kFields[] = {{"chat_template_kwargs", true},
                             {"continue_final_message", true},
                             {"enable_thinking", true},
                             {"frequency_penalty", true},
                             {"grammar", true},
                             {"ignore_eos", true},
                             {"logit_bias", true},
                             {"logprobs", true},
                             {"max_completion_tokens", false},
                             {"max_tokens", false},
                             {"messages", false},
                             {"min_p", true},
                             {"n", true},
                             {"parallel_tool_calls", true},
                             {"presence_penalty", true},
                             {"reasoning_effort", true},
                             {"repetition_penalty", true},
                             {"response_format", true},
                             {"seed", true},
                             {"stop", true},
                             {"temperature", false},
                             {"tool_choice", true},
                             {"tools", true},
                             {"top_k", true},
                             {"top_logprobs", false},
                             {"top_p", false},
                             {"user", false}};

bool passes_on(std::string_view field) {
  return std::ranges::find(kFields, field, &Field::name) != std::end(kFields);
}

// Whether a field asks for more than what every engine does without being asked.
bool asks(std::string_view field, const json::Value& value) {
  if (value.is_null()) return false;
  if (const auto* on = value.if_bool()) return *on != (field == "parallel_tool_calls");
  if (const auto* list = value.if_array()) return !list->empty();
  if (field == "response_format") {
    const auto* object = value.if_object();
    const json::Value* type = object == nullptr ? nullptr : object->if_contains("type");
    return type == nullptr || !type->is_string() || type->get_string() != "text";
  }
  if (const auto* object = value.if_object()) return !object->empty();
  if (const auto* text = value.if_string())
    return !text->empty() && !(field == "tool_choice" && (*text == "auto" || *text == "none"));
  const double number = value.is_double()  ? value.get_double()
                        : value.is_int64() ? static_cast<double>(value.get_int64())
                                           : 2;
  if (field == "seed") return true;
  if (field == "top_k") return number > 0;
  const double idle = field == "n" || field == "repetition_penalty" ? 1 : 0;
  return number != idle;
}

void add(std::string& fields, std::string_view name, std::string_view value) {
  if (!fields.empty()) fields += ',';
  append_quoted(fields, name);
  fields += ':';
  fields += value;
}

// `thinks`: of the request, unless the arguments say it themselves.
std::string template_arguments(const json::Value* arguments, bool thinks) {
  std::string out;
  const json::Object* given = arguments == nullptr ? nullptr : arguments->if_object();
  if (given != nullptr) {
    for (const auto& member : *given) add(out, name_of(member), json::to_text(member.value()));
    if (given->contains("enable_thinking")) return '{' + out + '}';
  }
  add(out, "enable_thinking", thinks ? "true" : "false");
  return '{' + out + '}';
}

// What our clients say in one word and other engines in another.
void add_renamed(std::string& fields, const json::Object& body) {
  const json::Value* thinks = body.if_contains("enable_thinking");
  const json::Value* arguments = body.if_contains("chat_template_kwargs");
  if (thinks != nullptr && thinks->is_bool()) {
    add(fields, "chat_template_kwargs", template_arguments(arguments, thinks->get_bool()));
  } else if (arguments != nullptr && !arguments->is_null()) {
    add(fields, "chat_template_kwargs", json::to_text(*arguments));
  }
  const json::Value* goes_on = body.if_contains("continue_final_message");
  if (goes_on != nullptr && goes_on->is_bool() && goes_on->get_bool())
    add(fields, "add_generation_prompt", "false");
}

// What means to us what its absence means. Engines look more narrowly at it: mlx_lm.server takes no
// null, llama-server and vLLM refuse a part whose other half is not there.
bool says_nothing(std::string_view name, const json::Object& body, const json::Value& value) {
  if (value.is_null()) return true;
  const auto is_set = [&body](std::string_view other) {
    const json::Value* found = body.if_contains({other.data(), other.size()});
    return found != nullptr && asks(other, *found);
  };
  if (name == "top_logprobs") return !is_set("logprobs");
  if (name == "max_tokens") return is_set("max_completion_tokens");
  if (name == "tools" || name == "tool_choice" || name == "parallel_tool_calls")
    return !is_set("tools");
  return false;
}

// A whole number is written as one: 4.0 is one to our readers and a fraction to others. Below 0 is
// another word for top_k's 0.
std::string value_for_engines(std::string_view name, const json::Value& value) {
  constexpr double kExact = 1LL << 53;
  if (name == "top_k" && !asks(name, value)) return "0";
  const double* number = value.if_double();
  if (number != nullptr && *number == std::trunc(*number) && std::abs(*number) < kExact)
    return std::to_string(static_cast<std::int64_t>(*number));
  return json::to_text(value);
}

// A choice among allowed tools, said so that each engine knows it: those tools alone, and the mode.
// Empty: there is no such choice. Of a body that was read as a chat request.
json::Object allowed_tools_alone(const json::Object& body) {
  const json::Value* choice = body.if_contains("tool_choice");
  const json::Object* object = choice == nullptr ? nullptr : choice->if_object();
  if (object == nullptr || object->at("type") != "allowed_tools") return {};
  const json::Object& allowed = object->at("allowed_tools").as_object();
  const json::Array& list = allowed.at("tools").as_array();
  json::Array tools;
  for (const json::Value& tool : body.at("tools").as_array()) {
    const bool may_be_called = std::ranges::any_of(list, [&tool](const json::Value& one) {
      return one.at("function").at("name") == tool.at("function").at("name");
    });
    if (may_be_called) tools.push_back(tool);
  }
  return json::Object{{"tools", std::move(tools)}, {"tool_choice", allowed.at("mode")}};
}

EngineRequest chat_for_engines(const json::Object& body) {
  EngineRequest out;
  if (body.contains("raw")) {
    out.kind = EngineRequest::Kind::Completion;
    return out;
  }
  const json::Object instead = allowed_tools_alone(body);
  const auto find = [&](std::string_view name) {
    const json::Value* found = instead.if_contains({name.data(), name.size()});
    return found != nullptr ? found : body.if_contains({name.data(), name.size()});
  };
  for (const auto& member : body) {
    const std::string_view name = name_of(member);
    const json::Value& value = *find(name);
    if (!passes_on(name) || name == "enable_thinking" || name == "chat_template_kwargs") continue;
    if (says_nothing(name, body, value)) continue;
    if (name == "seed") {
      out.seed = value_for_engines(name, value);
    } else {
      // Ollama knows the older name alone, and the others that one too.
      add(out.fields, name == "max_completion_tokens" ? "max_tokens" : name,
          value_for_engines(name, value));
    }
  }
  add_renamed(out.fields, body);
  for (const std::string_view field : refusable_fields()) {
    const json::Value* value = find(field);
    if (value != nullptr && asks(field, *value)) out.asks.push_back(field);
  }
  return out;
}

EngineRequest vectors_for_engines(const json::Object& body) {
  EngineRequest out{.kind = EngineRequest::Kind::Vectors};
  for (const auto& member : body)
    if (name_of(member) != "model" && !member.value().is_null())
      add(out.fields, name_of(member), json::to_text(member.value()));
  return out;
}

Error not_for(std::string_view engine, std::string_view why, std::string_view param) {
  return Error{.code = Code::InvalidArgument,
               .message = fmt::format("this model is served by {}, which {}",
                                      engine.empty() ? "another engine" : engine, why),
               .param = std::string(param),
               .reason = "not_supported_by_engine"};
}

}  // namespace

const std::vector<std::string_view>& refusable_fields() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Field& field : kFields)
      if (field.refusable) out.push_back(field.name);
    return out;
  }();
  return names;
}

bool EngineModels::hold(std::string_view model) const {
  return (std::ranges::find(names, model) == names.end()) == all_but;
}

Result<ServedRequest> read_served_chat(std::string_view body, const EngineModels& models) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  auto chat = read_chat_request(*object);
  if (!chat) return fail(chat.error());
  ServedRequest out{.chat = std::move(*chat), .for_engines = std::nullopt};
  if (models.hold(out.chat.model)) out.for_engines = chat_for_engines(*object);
  return out;
}

Result<ServedRequest> read_served_vectors(std::string_view body, const EngineModels& models) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  auto request = read_embeddings_request(*object);
  if (!request) return fail(request.error());
  ServedRequest out;
  out.chat.model = std::move(request->model);
  out.chat.user = std::move(request->user);
  out.chat.timeout_s = request->timeout_s;
  out.chat.raw.prompts = std::move(request->inputs);
  out.chat.n = static_cast<int>(out.chat.raw.prompts.size());
  if (models.hold(out.chat.model)) out.for_engines = vectors_for_engines(*object);
  return out;
}

Result<void> check_engine_can(const EngineRequest& request, const std::vector<std::string>& lacks,
                              std::string_view engine) {
  if (request.kind == EngineRequest::Kind::Completion) {
    return fail(not_for(engine, "gets chat requests only; use /v1/chat/completions", "prompt"));
  }
  for (const std::string& field : lacks) {
    if (std::ranges::find(request.asks, field) == request.asks.end()) continue;
    return fail(not_for(engine, fmt::format("does not know {}; leave it out", field), field));
  }
  return {};
}

std::string engine_body(const EngineRequest& request, const ForeignEngine& engine,
                        std::string_view cache_salt) {
  std::string more;
  add(more, "model", json_string(engine.model));
  if (request.kind != EngineRequest::Kind::Vectors) {
    more += R"(,"stream":true,"stream_options":{"include_usage":true})";
    if (!request.seed.empty() && !engine.drops_seed) add(more, "seed", request.seed);
    if (engine.salts_cache && !cache_salt.empty()) add(more, "cache_salt", json_string(cache_salt));
  }
  std::string out;
  out.reserve(request.fields.size() + more.size() + 3);
  out += '{';
  out += request.fields;
  if (!request.fields.empty()) out += ',';
  out += more;
  out += '}';
  return out;
}

}  // namespace flotilla::api
