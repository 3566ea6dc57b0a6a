#include "platform/files.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace flotilla::platform {
namespace {

// 0, or the errno of what could not be written.
int write_all(const Fd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

Fd open_to_append(const std::filesystem::path& file) {
  return Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
}

std::int64_t file_bytes(const Fd& fd) {
  struct stat info{};
  return fd && ::fstat(fd.get(), &info) == 0 ? info.st_size : 0;
}

void write_some(const Fd& fd, std::string_view bytes) {
  if (fd) (void)write_all(fd, bytes);
}

Result<void> write_whole(const std::filesystem::path& file,
                         std::span<const std::string_view> parts) {
  const std::filesystem::path beside = file.string() + ".part";
  const auto failed = [&](int error) {
    ::unlink(beside.c_str());
    return fail(error == ENOSPC ? Code::ResourceExhausted : Code::Internal,
                fmt::format("{} cannot be written: {}", file.string(), std::strerror(error)));
  };
  const Fd out(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out) return failed(errno);
  for (const std::string_view part : parts) {
    if (const int error = write_all(out, part); error != 0) return failed(error);
  }
  if (::rename(beside.c_str(), file.c_str()) != 0) return failed(errno);
  return {};
}

Result<std::string> read_whole(const std::filesystem::path& file, std::uint64_t bytes_max) {
  const auto failed = [&](Code code, const std::string& why) {
    return fail(code, fmt::format("{} cannot be read: {}", file.string(), why));
  };
  const Fd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in) return failed(errno == ENOENT ? Code::NotFound : Code::Internal, std::strerror(errno));
  const auto size = static_cast<std::uint64_t>(file_bytes(in));
  if (size > bytes_max)
    return failed(Code::ResourceExhausted, fmt::format("it has {} bytes", size));
  std::string out(size, '\0');
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t count = ::read(in.get(), out.data() + have, out.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(Code::Internal, std::strerror(errno));
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  out.resize(have);
  return out;
}

Result<Fd> open_part(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd)
    return fail(Code::PermissionDenied,
                fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Code::Conflict, fmt::format("another copy writes {}", file.string()));
  return fd;
}

Result<Fd> open_to_read(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  return fail(errno == ENOENT ? Code::NotFound : Code::PermissionDenied,
              fmt::format("{} cannot be read: {}", file.string(), std::strerror(errno)));
}

Result<std::span<char>> read_piece(const Fd& fd, std::span<char> into) {
  ssize_t count = -1;
  do count = ::read(fd.get(), into.data(), into.size());
  while (count < 0 && errno == EINTR);
  if (count < 0)
    return fail(Code::Internal, fmt::format("it cannot be read: {}", std::strerror(errno)));
  return into.first(static_cast<std::size_t>(count));
}

Result<void> write_piece(const Fd& fd, std::span<const char> bytes) {
  const int error = write_all(fd, {bytes.data(), bytes.size()});
  if (error == 0) return {};
  return fail(error == ENOSPC ? Code::ResourceExhausted : Code::Internal,
              fmt::format("it cannot be written: {}", std::strerror(error)));
}

Result<void> cut_file(const Fd& fd, std::int64_t bytes) {
  if (::ftruncate(fd.get(), bytes) == 0 && ::lseek(fd.get(), bytes, SEEK_SET) == bytes) return {};
  return fail(Code::Internal, fmt::format("it cannot be cut: {}", std::strerror(errno)));
}

Result<void> put_in_place(const Fd& fd, const std::filesystem::path& from,
                          const std::filesystem::path& to) {
  if (::fsync(fd.get()) == 0 && ::rename(from.c_str(), to.c_str()) == 0) return {};
  return fail(Code::Internal,
              fmt::format("{} cannot be put in place: {}", to.string(), std::strerror(errno)));
}

std::string file_identity(const std::filesystem::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return {};
#if defined(__APPLE__)
  const timespec changed = info.st_mtimespec;
#else
  const timespec changed = info.st_mtim;
#endif
  return fmt::format("{}:{}:{}:{}.{}", info.st_dev, info.st_ino, info.st_size, changed.tv_sec,
                     changed.tv_nsec);
}

Fd duplicate(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

Fd take_stdio(int fd) {
  Fd taken = duplicate(fd);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) ::dup2(null.get(), fd);
  return taken;
}

void redirect_stderr(const std::filesystem::path& file) {
  const Fd log = open_to_append(file);
  if (log) ::dup2(log.get(), STDERR_FILENO);
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }
void ignore_hangup() { std::signal(SIGHUP, SIG_IGN); }

}  // namespace flotilla::platform
