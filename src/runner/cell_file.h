#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

// A conversation's cells in a file. Our own container: what libllama stores names no model, has no
// checksum and is believed whatever it says. Two MACs with a key that only this replica's runners
// know: of the head, which is read when a runner starts, and of the whole.
namespace flotilla::runner {

struct CellFileHead {
  std::string group;  // within which it may be reused
  std::vector<engine::Token> tokens;
};
struct CellFile {
  CellFileHead head;
  std::vector<std::byte> cells;  // as Engine::save() made them
};

// Whole or not at all. The file's bytes. ResourceExhausted: the disk is full.
Result<std::uint64_t> write_cell_file(const std::filesystem::path& file, std::string_view key,
                                      const CellFileHead& head, std::span<const std::byte> cells);
// InvalidArgument: torn, changed, foreign or of another version.
Result<CellFileHead> read_cell_file_head(const std::filesystem::path& file, std::string_view key);
Result<CellFile> read_cell_file(const std::filesystem::path& file, std::string_view key);

}  // namespace flotilla::runner
