#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace flotilla::model {

// What a GGUF file says of its model, read from its header without trust: counts, lengths and
// offsets are checked against the file and against fixed limits before anything is allocated or
// skipped.
struct GgufHeader {
  std::uint32_t version = 0;
  std::string architecture;
  std::string name;
  std::int64_t context_trained = 0;
  std::int64_t layers = 0;
  std::int64_t embedding = 0;
  std::int64_t heads = 0;
  std::vector<std::int64_t> kv_heads;  // one a layer
  std::int64_t key_dim = 0;            // of a head
  std::int64_t value_dim = 0;
  std::int64_t state_bytes = 0;  // of one sequence, over all recurrent layers
  std::int64_t vocabulary = 0;
  std::string quantization;  // "Q4_1"; of the file type, else of the type with the most bytes
  std::int64_t tensor_count = 0;
  std::int64_t tensor_bytes = 0;
  std::int64_t embedding_bytes = 0;  // of the token embeddings, 0 where another part has them
  std::int64_t small_quantized = 0;  // matrices of fewer than 64 rows that are quantised
  std::string small_quantized_name;  // one of them
  bool has_output = false;           // a head of its own: else the embeddings are the head, too
  std::int64_t data_offset = 0;
  std::int64_t file_bytes = 0;
  int split_index = 0;  // this file's, from 0
  int split_count = 1;
  bool has_chat_template = false;
};

// NotFound: no such file. Unprocessable: not a GGUF, truncated (with the bytes that are missing),
// or something in it is out of bounds, named. Blocks on the disk; reads the header only.
Result<GgufHeader> read_gguf_header(const std::filesystem::path& file);

// The same for a file that is in memory as a whole.
Result<GgufHeader> parse_gguf_header(std::span<const std::uint8_t> file);

}  // namespace flotilla::model
