#include "api/model_config.h"

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 32;

std::int64_t number(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  const auto* whole = value == nullptr ? nullptr : value->if_int64();
  return whole == nullptr || *whole < 0 || *whole > kMost ? 0 : *whole;
}

std::string text(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  const auto* found = value == nullptr ? nullptr : value->if_string();
  return found == nullptr ? std::string() : std::string(std::string_view(*found).substr(0, 200));
}

const json::Object* member(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json) {
  const auto whole = json::parse_object(json);
  if (!whole) return fail(whole.error());
  // Models that also see keep those of their text part beside.
  const json::Object* part = member(*whole, "text_config");
  const json::Object& sizes = part == nullptr ? *whole : *part;
  ModelConfig out;
  out.architecture = text(*whole, "model_type");
  out.module = text(*whole, "model_file");
  out.context = number(sizes, "max_position_embeddings");
  const std::int64_t heads = number(sizes, "num_attention_heads");
  std::int64_t kv_heads = number(sizes, "num_key_value_heads");
  if (kv_heads == 0) kv_heads = heads;
  std::int64_t head_dim = number(sizes, "head_dim");
  if (head_dim == 0 && heads > 0) head_dim = number(sizes, "hidden_size") / heads;
  const std::int64_t layers = number(sizes, "num_hidden_layers");
  // Each at most 2^12 here: their product must not overflow.
  if (layers <= 4096 && kv_heads <= 4096 && head_dim <= 4096)
    out.kv_bytes_per_token = 4 * layers * kv_heads * head_dim;  // a key and a value of 2 bytes
  if (const json::Object* quantized = member(*whole, "quantization");
      quantized != nullptr && number(*quantized, "bits") > 0) {
    out.quantization = fmt::format("{}bit", number(*quantized, "bits"));
  } else {
    out.quantization = text(*whole, "torch_dtype");
    if (out.quantization.empty()) out.quantization = text(*whole, "dtype");
  }
  return out;
}

std::string module_warning(const ModelConfig& config) {
  if (config.module.empty()) return {};
  return fmt::format(
      "it ships a module of its own ({}), and one that was written for a single stream fails every "
      "request at prefill once several run together; prefer a checkpoint without a bundled module",
      config.module);
}

}  // namespace flotilla::api
