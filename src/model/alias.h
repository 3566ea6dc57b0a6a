#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flotilla::model {

// A model's alias unless one is given: the path's last part in lower case, without extension, part
// of a split and quantisation; characters beyond [a-z0-9.-] become '-', at most 64 are kept.
// "models/SmolLM2-135M-Instruct.Q4_1.gguf" → "smollm2-135m-instruct". Never empty ("model").
std::string default_alias(std::string_view model_path);

// [a-z0-9.-], 1-64 characters, begins with a letter or digit.
Result<void> check_alias(std::string_view alias);

// Names of clusters and nodes: [a-z0-9][a-z0-9-]{0,40}. `what` begins the message: "cluster id".
Result<void> check_id(std::string_view what, std::string_view id);

}  // namespace flotilla::model
