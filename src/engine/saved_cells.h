#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace flotilla::engine {

// The container of a slot's saved cells. libllama's own format names no model, has no checksum, and
// accepts damaged positions; so nothing reaches it that is not exactly what was saved.
//
//   magic, version, fingerprint of model and cell layout, cells, bytes and checksum of the payload
struct SavedCells {
  std::uint64_t fingerprint = 0;
  int length = 0;
  std::span<const std::byte> payload;
};

// Bytes to leave free before the payload.
std::size_t saved_header_bytes();
// Fills in the header in front of the payload that `state` holds.
void seal_saved_cells(std::uint64_t fingerprint, int length, std::span<std::byte> state);
// The cells in `state`, all verified. InvalidArgument: not ours, of another model, or damaged.
Result<SavedCells> open_saved_cells(std::uint64_t fingerprint, std::span<const std::byte> state);

}  // namespace flotilla::engine
