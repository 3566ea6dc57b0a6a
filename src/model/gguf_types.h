#pragma once

#include <cstdint>
#include <string_view>

namespace flotilla::model {

// How a tensor's elements are stored: `block` elements take `bytes`.
struct TensorType {
  std::string_view name;  // empty: there is no such type
  std::uint32_t block = 1;
  std::uint32_t bytes = 0;
};
TensorType tensor_type(std::uint32_t id);

// "Q4_K_M" for general.file_type; empty if unknown.
std::string_view file_type_name(std::uint64_t id);

}  // namespace flotilla::model
