#include "platform/file_lock.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

namespace flotilla::platform {

Result<FileLock> FileLock::acquire(const std::filesystem::path& file, const std::string& holder) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd)
    return fail(Code::Unavailable,
                fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  int locked = -1;
  do locked = ::flock(fd.get(), LOCK_EX | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno == EWOULDBLOCK) {
    const std::string other = read_lock_holder(file);
    return fail(Code::Conflict, fmt::format("{} is in use by {}", file.parent_path().string(),
                                            other.empty() ? "another process" : other));
  }
  if (locked != 0)
    return fail(Code::Unavailable,
                fmt::format("cannot lock {}: {}", file.string(), std::strerror(errno)));
  FileLock lock(std::move(fd));
  lock.describe(holder);
  return lock;
}

// The line is for people only: one that could not be written (disk full) still leaves the lock.
void FileLock::describe(const std::string& holder) {
  const std::string line = holder + "\n";
  if (::ftruncate(fd_.get(), 0) != 0) return;
  if (::pwrite(fd_.get(), line.data(), line.size(), 0) < 0) return;
}

std::string read_lock_holder(const std::filesystem::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::array<char, 512> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  std::string line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return line.substr(0, line.find('\n'));
}

}  // namespace flotilla::platform
