#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace flotilla::engine {

// What must be known of a model's files before libllama loads them.
struct GgufFacts {
  std::vector<std::filesystem::path> files;  // more than one: a split model, in order
  std::string architecture;
  int context_trained = 0;        // 0: not said
  std::int64_t tensor_bytes = 0;  // over all files
  std::int64_t file_bytes = 0;
  std::uint64_t fingerprint = 0;  // of the headers and of samples of the weights
  // What it was made for. Vectors of the last token are computed like text, in any parts; others
  // are of all tokens, or of tokens that see what follows them, so a text is computed as a whole.
  enum class Use { Text, LastVectors, WholeVectors, Other };
  Use use = Use::Text;
};

// NotFound: a file is missing. InvalidArgument: not a GGUF, broken or truncated. All name the file
// and what is wrong with it. Reads headers and a few blocks.
Result<GgufFacts> read_gguf_facts(const std::filesystem::path& model);

}  // namespace flotilla::engine
