#include "api/raw_prompts.h"

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kTokensMax = 1 << 20;
constexpr std::size_t kSuffixMax = 32 << 20;

RawPrompts::Prompt read_prompt(const json::Value& value, const std::string& path,
                               json::Fault& fault) {
  if (value.is_string() && !value.get_string().empty()) return std::string(value.get_string());
  std::vector<std::int32_t> ids;
  const json::Array* items = value.if_array();
  if (items == nullptr || items->empty() || items->size() > kTokensMax) {
    fault.set(path, fmt::format("{} is {}; it must be a text or a list of token ids, not empty",
                                path, json::shown(value)));
    return ids;
  }
  ids.reserve(items->size());
  for (const json::Value& item : *items) {
    if (!item.is_int64() || item.get_int64() < 0 || item.get_int64() > INT32_MAX) {
      fault.set(path,
                fmt::format("{} has {}; token ids are integers from 0", path, json::shown(item)));
      return ids;
    }
    ids.push_back(static_cast<std::int32_t>(item.get_int64()));
  }
  return ids;
}

}  // namespace

RawPrompts read_raw_prompts(json::Reader& in) {
  RawPrompts out;
  const json::Object* object = in.object("raw");
  if (object == nullptr) return out;
  json::Reader raw(*object, in.fault(), "raw");
  raw.require("prompts", "a list of prompts");
  const json::Array* prompts = raw.array("prompts", kRawChoicesMax);
  if (prompts == nullptr) return out;
  if (prompts->empty()) raw.refuse("prompts", "must hold at least one prompt");
  for (std::size_t i = 0; i < prompts->size() && !in.fault(); ++i) {
    // Named as the client of /v1/completions knows it.
    const std::string path = prompts->size() == 1 ? "prompt" : json::item_path("prompt", i);
    out.prompts.push_back(read_prompt((*prompts)[i], path, in.fault()));
  }
  out.echo = raw.boolean("echo").value_or(false);
  out.suffix = raw.string("suffix", kSuffixMax).value_or("");
  return out;
}

std::vector<RawPrompts::Prompt> read_prompts(json::Reader& in, const char* name, std::size_t most) {
  in.require(name, "a text, a list of texts, or token ids");
  const json::Value* value = in.find(name);
  if (value == nullptr) return {};
  const json::Array* list = value->if_array();
  const bool one =
      value->is_string() || (list != nullptr && !list->empty() && list->front().is_number());
  if (one) return {read_prompt(*value, in.path_of(name), in.fault())};
  if (list == nullptr || list->empty() || list->size() > most) {
    in.refuse(name, fmt::format("must be a text, a list of 1 to {} texts, or token ids", most));
    return {};
  }
  std::vector<RawPrompts::Prompt> out;
  for (std::size_t i = 0; i < list->size() && !in.fault(); ++i)
    out.push_back(read_prompt((*list)[i], json::item_path(in.path_of(name), i), in.fault()));
  return out;
}

}  // namespace flotilla::api
