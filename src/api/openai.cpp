#include "api/openai.h"

#include <charconv>

#include <fmt/format.h>

#include "api/fields_of_theirs.h"
#include "api/json.h"
#include "api/openai_body.h"
#include "api/openai_messages.h"
#include "api/openai_tools.h"

namespace flotilla::api {
namespace {

constexpr int kChoicesMax = 16;
constexpr std::size_t kStopsMax = 16;
constexpr std::size_t kStopBytesMax = 4096;
constexpr std::size_t kNameBytesMax = 512;
constexpr std::size_t kLogitBiasMax = 1024;
constexpr double kTimeoutMaxS = 7 * 24 * 3600.0;

// Fields of OpenAI's that would change the answer and that this server does not do: refused unless
// their value asks for nothing.
void refuse_unsupported(json::Reader& in) {
  refuse_fields(in, {"functions", "audio", "web_search_options", "prediction", "moderation"});
  if (in.find("function_call") != nullptr) {
    const auto call = in.choice("function_call", {"none", "auto"});
    if (!call) refuse_field(in, "function_call", "names a function, but only tools are supported");
  }
  if (const json::Array* modalities = in.array("modalities", 16)) {
    for (const json::Value& modality : *modalities) {
      if (modality != "text") in.refuse("modalities", "must be [\"text\"]");
    }
  }
  if (in.boolean("store").value_or(false))
    refuse_field(in, "store", "cannot be true: nothing is stored");
  if (in.boolean("background").value_or(false)) refuse_field(in, "background", "is not supported");
  in.choice("service_tier", {"auto", "default"});
}

void read_stop(json::Reader& in, ChatRequest& out) {
  const json::Value* value = in.find("stop");
  if (value == nullptr) return;
  const auto add = [&](const json::Value& item) {
    const bool right =
        item.is_string() && !item.get_string().empty() && item.get_string().size() <= kStopBytesMax;
    if (right) {
      out.stop.emplace_back(item.get_string());
    } else {
      in.fault().set("stop", fmt::format("stop has {}; each stop must be a string of 1 to {} bytes",
                                         json::shown(item), kStopBytesMax));
    }
  };
  if (value->is_string()) return add(*value);
  if (!value->is_array()) return in.refuse("stop", "must be a string or a list of strings");
  const json::Array* stops = in.array("stop", kStopsMax);
  if (stops == nullptr) return;
  for (const json::Value& item : *stops) add(item);
}

void read_logit_bias(json::Reader& in, ChatRequest& out) {
  const json::Object* biases = in.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kLogitBiasMax) {
    return in.fault().set(
        "logit_bias", fmt::format("logit_bias has {} entries; at most {} are taken", biases->size(),
                                  kLogitBiasMax));
  }
  json::Reader entries(*biases, in.fault(), "logit_bias");
  for (const auto& member : *biases) {
    const std::string_view name(member.key().data(), member.key().size());
    std::int32_t token = -1;
    const auto end = name.data() + name.size();
    const auto [stopped, error] = std::from_chars(name.data(), end, token);
    if (error != std::errc{} || stopped != end || token < 0) {
      return in.fault().set("logit_bias",
                            fmt::format("logit_bias has the key {}; keys must be token ids",
                                        json::shown(json::Value(member.key()))));
    }
    if (const auto bias = entries.number(name, -100, 100)) {
      out.logit_bias.emplace_back(token, static_cast<float>(*bias));
    } else if (member.value().is_null()) {
      continue;
    }
  }
}

void read_sampling(json::Reader& in, ChatRequest& out) {
  out.temperature = in.number("temperature", 0, 2).value_or(out.temperature);
  out.top_p = in.number("top_p", 0, 1).value_or(out.top_p);
  // llama.cpp and vLLM clients send -1 for "off".
  out.top_k =
      static_cast<int>(std::max<std::int64_t>(in.integer("top_k", -1, 1'000'000).value_or(0), 0));
  out.min_p = in.number("min_p", 0, 1).value_or(out.min_p);
  out.presence_penalty = in.number("presence_penalty", -2, 2).value_or(0);
  out.frequency_penalty = in.number("frequency_penalty", -2, 2).value_or(0);
  out.repetition_penalty = in.number("repetition_penalty", 0.01, 10).value_or(1);
  out.ignore_eos = in.boolean("ignore_eos").value_or(false);
  if (const json::Value* seed = in.find("seed"); seed != nullptr && seed->is_uint64()) {
    out.seed = seed->get_uint64();
  } else if (const auto number = in.integer("seed", INT64_MIN, INT64_MAX)) {
    out.seed = static_cast<std::uint64_t>(*number);
  }
  read_logit_bias(in, out);
  const bool logprobs = in.boolean("logprobs").value_or(false);
  const auto top = in.integer("top_logprobs", 0, 20);
  if (logprobs) out.top_logprobs = static_cast<int>(top.value_or(0));
  if (!logprobs && top.value_or(0) > 0) {
    in.refuse("top_logprobs", "needs logprobs to be true");
  }
}

void read_template(json::Reader& in, ChatRequest& out) {
  out.continue_final_message = in.boolean("continue_final_message").value_or(false);
  if (const json::Object* kwargs = in.object("chat_template_kwargs")) {
    for (const auto& member : *kwargs) {
      out.template_kwargs.emplace_back(member.key(), json::to_text(member.value()));
      if (member.key() == "enable_thinking" && member.value().is_bool()) {
        out.enable_thinking = member.value().get_bool();
      }
    }
  }
  // The field wins over the keyword of the same meaning. A model that knows no effort ignores it.
  if (const auto effort = in.choice("reasoning_effort",
                                    {"none", "minimal", "low", "medium", "high", "xhigh", "max"})) {
    if (*effort == "none") out.enable_thinking = false;
    std::erase_if(out.template_kwargs, [](const auto& k) { return k.first == "reasoning_effort"; });
    out.template_kwargs.emplace_back("reasoning_effort", '"' + *effort + '"');
  }
  out.enable_thinking = in.boolean("enable_thinking").value_or(out.enable_thinking);
  if (const auto budget = in.integer("thinking_budget", 0, INT32_MAX))
    out.thinking_budget = static_cast<int>(*budget);
}

void read_limits(json::Reader& in, ChatRequest& out) {
  const auto max_tokens = in.integer("max_tokens", 1, INT32_MAX);
  const auto newer = in.integer("max_completion_tokens", 1, INT32_MAX);
  if (const auto limit = newer ? newer : max_tokens) out.max_tokens = static_cast<int>(*limit);
  if (out.raw.prompts.empty()) {
    out.n = static_cast<int>(in.integer("n", 1, kChoicesMax).value_or(1));
  } else {
    const auto prompts = static_cast<int>(out.raw.prompts.size());
    out.raw.each = static_cast<int>(in.integer("n", 1, kRawChoicesMax / prompts).value_or(1));
    out.n = out.raw.each * prompts;
  }
  out.timeout_s = in.number("timeout_s", 0.001, kTimeoutMaxS);
  read_stop(in, out);
}

void read_stream(json::Reader& in, ChatRequest& out) {
  out.stream = in.boolean("stream").value_or(false);
  const json::Object* object = in.object("stream_options");
  if (object == nullptr) return;
  json::Reader options(*object, in.fault(), "stream_options");
  out.include_usage = options.boolean("include_usage").value_or(false);
  out.early_usage = options.boolean("early_usage").value_or(false);
  read_obfuscation(options);
}

void read_names(json::Reader& in, ChatRequest& out) {
  in.require("model", "the alias of a loaded model");
  out.model = in.string("model", kNameBytesMax).value_or("");
  out.session_id = in.string("session_id", kNameBytesMax).value_or("");
  out.prompt_cache_key = in.string("prompt_cache_key", kNameBytesMax).value_or("");
  out.user = in.string("user", kNameBytesMax).value_or("");
  in.object("metadata");
  read_cache_hints(in);
}

}  // namespace

Result<ChatRequest> parse_chat_request(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  return read_chat_request(*object);
}

Result<ChatRequest> read_chat_request(const json::Object& body) {
  json::Fault fault;
  json::Reader in(body, fault);
  ChatRequest out;
  read_names(in, out);
  out.raw = read_raw_prompts(in);
  if (out.raw.prompts.empty()) out.messages = read_messages(in);
  read_stream(in, out);
  read_limits(in, out);
  read_sampling(in, out);
  read_template(in, out);
  read_tools(in, out);
  read_answer_form(in, out);
  refuse_unsupported(in);
  if (fault) return fault.unexpected();
  return out;
}

}  // namespace flotilla::api
