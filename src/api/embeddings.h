#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat_chunks.h"
#include "api/raw_prompts.h"
#include "base/result.h"

// POST /v1/embeddings, as OpenAI has it. Unknown fields are accepted.
namespace flotilla::api {

struct EmbeddingsRequest {
  std::string model;
  std::vector<RawPrompts::Prompt> inputs;  // 1-2048, none empty; token ids not range-checked
  bool base64 = false;                     // vectors as the bytes of their floats
  std::optional<int> dimensions;           // of each vector; absent: all of the model's
  std::optional<double> timeout_s;         // of the whole request
  std::string user;
};
Result<EmbeddingsRequest> parse_embeddings_request(std::string_view body);

// Numbers of one answer: so many take 10 to 50 MiB as text.
inline constexpr std::size_t kEmbeddingNumbersMax = 4 << 20;

// Of length one, its first `dimensions` numbers: what OpenAI's models do to shorten a vector.
std::vector<float> unit_vector(std::vector<float> vector, std::size_t dimensions);

struct EmbeddingsAnswer {
  std::string model;
  std::vector<std::vector<float>> vectors;  // in the order of the inputs
  bool base64 = false;
  std::int64_t prompt_tokens = 0;
  ServedBy served = {};
};
std::string to_json(const EmbeddingsAnswer& answer);

// Another engine's answer: under the alias that the client sent.
struct ForeignEmbeddings {
  std::string body;
  std::int64_t prompt_tokens = 0;  // 0: it tells no counts
};
ForeignEmbeddings read_foreign_embeddings(std::string_view body, std::string_view alias);

}  // namespace flotilla::api
