#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "platform/fd.h"

namespace flotilla::platform {

// One owner of a directory, by a lock on a file that also names the holder. The kernel drops the
// lock when the holder dies, however it dies. The file stays.
class FileLock {
 public:
  // Held by another process: Conflict, whose message ends in what the holder wrote of itself.
  // `holder` is one line: "pid 4711, port 8000".
  static Result<FileLock> acquire(const std::filesystem::path& file, const std::string& holder);
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) noexcept = default;

  // Rewrites the line.
  void describe(const std::string& holder);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// What the holder of a lock file wrote; empty if nothing is there.
std::string read_lock_holder(const std::filesystem::path& file);

}  // namespace flotilla::platform
