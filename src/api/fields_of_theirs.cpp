#include "api/fields_of_theirs.h"

#include <fmt/format.h>

namespace flotilla::api {
namespace {

constexpr std::size_t kNameMax = 512;
constexpr std::size_t kItemsMax = 64;

bool asks_for_nothing(const json::Value& value) {
  return value == false || (value.is_array() && value.get_array().empty()) ||
         (value.is_object() && value.get_object().empty());
}

}  // namespace

void refuse_field(json::Reader& in, std::string_view name, std::string_view why) {
  const std::string field = in.path_of(name);
  in.fault().set(field, fmt::format("{} {}; leave it out", field, why), "unsupported_parameter");
}

void refuse_fields(json::Reader& in, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::Value* value = in.find(name);
    if (value != nullptr && !asks_for_nothing(*value)) refuse_field(in, name, "is not supported");
  }
}

void refuse_but(json::Reader& in, std::string_view name, std::string_view allowed) {
  const json::Value* value = in.find(name);
  if (value == nullptr || (value->is_string() && value->get_string() == allowed)) return;
  refuse_field(in, name,
               fmt::format("is {}: only \"{}\" is supported", json::shown(*value), allowed));
}

void refuse_items_but(json::Reader& in, std::string_view name, std::string_view allowed) {
  const json::Array* list = in.array(name, kItemsMax);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const json::Value& item = (*list)[i];
    if (item.is_string() && item.get_string() == allowed) continue;
    refuse_field(in, name,
                 fmt::format("has {}: only \"{}\" is supported", json::shown(item), allowed));
  }
}

void read_cache_hints(json::Reader& in) {
  in.string("safety_identifier", kNameMax);
  in.choice("verbosity", {"low", "medium", "high"});
  in.choice("prompt_cache_retention", {"in_memory", "in-memory", "24h"});
  const json::Object* object = in.object("prompt_cache_options");
  if (object == nullptr) return;
  json::Reader options(*object, in.fault(), "prompt_cache_options");
  options.choice("mode", {"implicit", "explicit"});
  options.string("ttl", kNameMax);
  options.boolean("prewarm");
  refuse_fields(options, {"prewarm", "comparison_response_id"});
}

void read_cache_breakpoint(json::Reader& part) {
  const json::Object* object = part.object("prompt_cache_breakpoint");
  if (object == nullptr) return;
  json::Reader mark(*object, part.fault(), part.path_of("prompt_cache_breakpoint"));
  mark.choice("mode", {"explicit"});
  mark.string("ttl", kNameMax);
}

void read_cache_control(json::Reader& in) {
  const json::Object* object = in.object("cache_control");
  if (object == nullptr) return;
  json::Reader control(*object, in.fault(), in.path_of("cache_control"));
  control.choice("type", {"ephemeral"});
  control.string("ttl", kNameMax);
}

void read_caller(json::Reader& in) {
  const json::Object* object = in.object("caller");
  if (object == nullptr) return;
  json::Reader caller(*object, in.fault(), in.path_of("caller"));
  refuse_but(caller, "type", "direct");
}

void read_obfuscation(json::Reader& stream_options) {
  if (stream_options.boolean("include_obfuscation").value_or(false))
    refuse_field(stream_options, "include_obfuscation", "is not supported");
}

}  // namespace flotilla::api
