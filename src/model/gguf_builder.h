#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flotilla::model {

// Writes GGUF files for tests: whatever is said, true or not.
class GgufBuilder {
 public:
  std::vector<std::uint8_t> bytes;

  template <class T>
  GgufBuilder& raw(T value) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
    return *this;
  }
  GgufBuilder& text(std::string_view value) {
    raw<std::uint64_t>(value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  GgufBuilder& begin(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    for (const char c : {'G', 'G', 'U', 'F'}) bytes.push_back(static_cast<std::uint8_t>(c));
    return raw(version).raw(tensors).raw(entries);
  }
  GgufBuilder& number(std::string_view key, std::uint32_t value) {
    return text(key).raw<std::uint32_t>(4).raw(value);
  }
  GgufBuilder& string(std::string_view key, std::string_view value) {
    return text(key).raw<std::uint32_t>(8).text(value);
  }
  GgufBuilder& numbers(std::string_view key, const std::vector<std::uint32_t>& values) {
    text(key).raw<std::uint32_t>(9).raw<std::uint32_t>(4).raw<std::uint64_t>(values.size());
    for (const std::uint32_t value : values) raw(value);
    return *this;
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& values) {
    text(key).raw<std::uint32_t>(9).raw<std::uint32_t>(8).raw<std::uint64_t>(values.size());
    for (const std::string& value : values) text(value);
    return *this;
  }
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                      std::uint32_t type, std::uint64_t offset) {
    text(name).raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) raw(dim);
    return raw(type).raw(offset);
  }
  GgufBuilder& data(std::size_t count) {
    while (bytes.size() % 32 != 0) bytes.push_back(0);
    bytes.resize(bytes.size() + count);
    return *this;
  }
};

// Two layers, 4 heads of 8, 2 heads of KV, 5 tokens; an f32 and a q4_0 tensor.
inline std::vector<std::uint8_t> small_gguf() {
  GgufBuilder file;
  file.begin(2, 9)
      .string("general.architecture", "llama")
      .string("general.name", "tiny")
      .number("general.file_type", 2)
      .number("llama.context_length", 128)
      .number("llama.embedding_length", 32)
      .number("llama.block_count", 2)
      .number("llama.attention.head_count", 4)
      .number("llama.attention.head_count_kv", 2)
      .strings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e"})
      .tensor("token_embd.weight", {32, 5}, 0, 0)
      .tensor("blk.0.attn_q.weight", {32, 32}, 2, 640)
      .data(640 + 576);
  return file.bytes;
}

}  // namespace flotilla::model
