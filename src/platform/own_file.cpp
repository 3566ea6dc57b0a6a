#include "platform/own_file.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

#include <fmt/format.h>

namespace flotilla::platform {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Result<void> check_one(const fs::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return fail(Code::Unavailable,
                fmt::format("{} cannot be looked at: {}", path.string(), std::strerror(errno)));
  }
  const bool is_folder = S_ISDIR(info.st_mode);
  const bool is_shared = is_folder && (info.st_mode & S_ISVTX) != 0;
  const bool counts = is_folder || S_ISREG(info.st_mode);
  if (!counts || is_shared || (info.st_mode & kOthersWrite) == 0) return {};
  return fail(Code::InvalidArgument,
              fmt::format("other users of this machine may write {} (mode {:04o}); chmod go-w {}",
                          path.string(), info.st_mode & 07777U, path.string()));
}

Result<void> check_way(const fs::path& absolute) {
  for (fs::path at = absolute; !at.empty(); at = at.parent_path()) {
    if (auto one = check_one(at); !one) return one;
    if (at == at.root_path()) break;
  }
  return {};
}

}  // namespace

Result<void> check_others_cannot_write(const fs::path& file) {
  std::error_code failed;
  const fs::path named = fs::absolute(file, failed);
  if (auto way = check_way(named); !way) return way;
  const fs::path resolved = fs::canonical(named, failed);
  return failed || resolved == named ? Result<void>() : check_way(resolved);
}

}  // namespace flotilla::platform
