#include "platform/first_line.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "platform/fd.h"

namespace flotilla::platform {
namespace {

constexpr int kPatienceMs = 1000;

std::unexpected<Error> refuse(const std::filesystem::path& file, const std::string& why) {
  return fail(Code::InvalidArgument, fmt::format("{} {}", file.string(), why));
}

std::unexpected<Error> unreadable(const std::filesystem::path& file) {
  return refuse(file, fmt::format("cannot be read: {}", std::strerror(errno)));
}

// Until a pipe has something, or its last writer has gone.
void wait_for_writer(int fd, const std::function<void()>& waits) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  int patience_ms = kPatienceMs;
  while (true) {
    const int count = ::poll(&ready, 1, patience_ms);
    if (count > 0 || (count < 0 && errno != EINTR)) return;
    if (count == 0) {
      waits();
      patience_ms = -1;
    }
  }
}

}  // namespace

Result<std::string> read_first_line(const std::filesystem::path& file,
                                    const std::function<void()>& waits) {
  // A named pipe without a writer would hold us in open().
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return unreadable(file);
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
    return refuse(file, "is neither a file nor a pipe");
  if (S_ISFIFO(info.st_mode)) {
    wait_for_writer(fd.get(), waits);
    ::fcntl(fd.get(), F_SETFL, O_RDONLY);  // from now on reads wait
  }

  std::string line;
  std::array<char, kFirstLineMax + 1> bytes{};
  while (line.find('\n') == std::string::npos && line.size() <= kFirstLineMax) {
    const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size() - line.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(file);
    if (got == 0) break;
    line.append(bytes.data(), static_cast<std::size_t>(got));
  }
  line.resize(std::min(line.find('\n'), line.size()));
  if (line.size() > kFirstLineMax)
    return refuse(file, fmt::format("has a first line of more than {} bytes", kFirstLineMax));
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty()) return refuse(file, "has an empty first line");
  return line;
}

}  // namespace flotilla::platform
