#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flotilla::api {

// What a model folder's config.json says, as far as we need it. 0 and empty: it does not say.
struct ModelConfig {
  std::string architecture;  // model_type
  std::string quantization;  // "4bit", "bfloat16"
  std::int64_t context = 0;
  std::int64_t kv_bytes_per_token = 0;  // of 16-bit keys and values, full attention in each layer
  std::string module;                   // model_file: code of its own that an engine would run
};
Result<ModelConfig> parse_model_config(std::string_view json);

// What a folder with code of its own may do to a load; empty without.
std::string module_warning(const ModelConfig& config);

}  // namespace flotilla::api
