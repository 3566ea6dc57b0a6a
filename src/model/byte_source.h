#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace flotilla::model {

// A file's bytes in order, from the disk or from memory. No position is beyond size(); reads of
// more than is left fail and move nothing.
class ByteSource {
 public:
  static Result<ByteSource> open(const std::filesystem::path& file);
  static ByteSource from_memory(std::span<const std::uint8_t> bytes);

  std::uint64_t size() const { return size_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return size_ - position_; }

  bool read(void* to, std::uint64_t count);
  bool skip(std::uint64_t count);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  bool fill();

  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::uint8_t> window_;      // of the file, from window_begin_
  std::span<const std::uint8_t> memory_;  // the window, or the whole
  std::uint64_t window_begin_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace flotilla::model
