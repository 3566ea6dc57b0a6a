#include "model/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace flotilla::model {
namespace {

constexpr std::size_t kWindow = std::size_t{64} << 10;

}  // namespace

Result<ByteSource> ByteSource::open(const std::filesystem::path& file) {
  std::error_code failed;
  const auto status = std::filesystem::status(file, failed);
  if (status.type() == std::filesystem::file_type::not_found)
    return fail(Code::NotFound, fmt::format("{} does not exist", file.string()));
  if (failed) return fail(Code::NotFound, fmt::format("{}: {}", file.string(), failed.message()));
  if (status.type() != std::filesystem::file_type::regular)
    return fail(Code::Unprocessable, fmt::format("{} is not a file", file.string()));
  ByteSource source;
  source.size_ = std::filesystem::file_size(file, failed);
  if (failed) return fail(Code::NotFound, fmt::format("{}: {}", file.string(), failed.message()));
  source.file_.reset(std::fopen(file.c_str(), "rbe"));
  if (!source.file_)
    return fail(errno == EACCES ? Code::PermissionDenied : Code::NotFound,
                fmt::format("{}: {}", file.string(), std::strerror(errno)));
  return source;
}

ByteSource ByteSource::from_memory(std::span<const std::uint8_t> bytes) {
  ByteSource source;
  source.memory_ = bytes;
  source.size_ = bytes.size();
  return source;
}

bool ByteSource::fill() {
  if (!file_) return false;
  if (::fseeko(file_.get(), static_cast<off_t>(position_), SEEK_SET) != 0) return false;
  window_.resize(kWindow);
  const std::size_t got = std::fread(window_.data(), 1, kWindow, file_.get());
  window_begin_ = position_;
  memory_ = std::span<const std::uint8_t>(window_.data(), got);
  return got > 0;
}

bool ByteSource::read(void* to, std::uint64_t count) {
  if (count > remaining()) return false;
  const std::uint64_t begin = position_;
  auto* out = static_cast<std::uint8_t*>(to);
  while (count > 0) {
    const bool inside = position_ >= window_begin_ && position_ - window_begin_ < memory_.size();
    if (!inside && !fill()) {  // the file became shorter while it was read
      position_ = begin;
      return false;
    }
    const auto part = memory_.subspan(static_cast<std::size_t>(position_ - window_begin_));
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(count, part.size()));
    std::memcpy(out, part.data(), step);
    out += step;
    position_ += step;
    count -= step;
  }
  return true;
}

bool ByteSource::skip(std::uint64_t count) {
  if (count > remaining()) return false;
  position_ += count;
  return true;
}

}  // namespace flotilla::model
