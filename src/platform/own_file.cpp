#include "platform/own_file.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace flotilla::platform {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

std::unexpected<Error> not_there(const fs::path& path) {
  return fail(Code::Unavailable,
              fmt::format("{} cannot be looked at: {}", path.string(), std::strerror(errno)));
}

bool is_shared_folder(const struct stat& info) {
  return S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0 &&
         (info.st_mode & kOthersWrite) != 0;
}

Result<void> check_one(const fs::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return not_there(path);
  const bool counts = S_ISDIR(info.st_mode) || S_ISREG(info.st_mode);
  if (!counts || is_shared_folder(info) || (info.st_mode & kOthersWrite) == 0) return {};
  return fail(Code::InvalidArgument,
              fmt::format("other users of this machine may write {} (mode {:04o}); chmod go-w {}",
                          path.string(), info.st_mode & 07777U, path.string()));
}

// A link there is its maker's, wherever it leads.
Result<void> check_owner(const fs::path& path, std::uint32_t user) {
  struct stat folder{};
  struct stat info{};
  if (::stat(path.parent_path().c_str(), &folder) != 0) return not_there(path.parent_path());
  if (::lstat(path.c_str(), &info) != 0) return not_there(path);
  if (!is_shared_folder(folder) || info.st_uid == 0 || info.st_uid == user) return {};
  return fail(Code::InvalidArgument,
              fmt::format("another user of this machine (uid {}) has made {}, in a folder where "
                          "anyone may; remove it or keep the file elsewhere",
                          info.st_uid, path.string()));
}

// From the root down: beyond another's link in such a folder the system itself may refuse to look.
Result<void> check_way(const fs::path& absolute, std::uint32_t user) {
  fs::path at;
  for (const fs::path& part : absolute) {
    if (part.empty()) continue;
    at /= part;
    if (at != at.root_path()) {
      if (auto owner = check_owner(at, user); !owner) return owner;
    }
    if (auto one = check_one(at); !one) return one;
  }
  return {};
}

}  // namespace

Result<void> check_others_cannot_write(const fs::path& file) {
  return check_others_cannot_write(file, ::geteuid());
}

Result<void> check_others_cannot_write(const fs::path& file, std::uint32_t user) {
  std::error_code failed;
  const fs::path named = fs::absolute(file, failed);
  if (auto way = check_way(named, user); !way) return way;
  const fs::path resolved = fs::canonical(named, failed);
  return failed || resolved == named ? Result<void>() : check_way(resolved, user);
}

}  // namespace flotilla::platform
