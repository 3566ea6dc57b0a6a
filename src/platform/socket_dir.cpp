#include "platform/socket_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace flotilla::platform {
namespace {

// FNV-1a: the name only has to be the same each time; who owns the directory is checked.
std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

// ssh forwards sockets by name: nodes/ssh_command takes these characters in one.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._+-/").find(c) != std::string_view::npos;
}

bool fits(const std::filesystem::path& directory) {
  return directory.native().size() + 1 + kSocketNameMax <= kSocketPathMax &&
         std::ranges::all_of(directory.native(), is_plain);
}

Result<void> refuse(const std::filesystem::path& directory, std::string_view why) {
  return fail(Code::PermissionDenied,
              fmt::format("{} {}; remove it or choose another directory", directory.string(), why));
}

}  // namespace

Result<void> make_private_dir(const std::filesystem::path& directory) {
  std::error_code failed;
  if (directory.has_parent_path())
    std::filesystem::create_directories(directory.parent_path(), failed);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(Code::Unavailable,
                fmt::format("cannot create {}: {}", directory.string(), std::strerror(errno)));
  struct stat info{};
  if (::lstat(directory.c_str(), &info) != 0)
    return fail(Code::Unavailable, fmt::format("{}: {}", directory.string(), std::strerror(errno)));
  if (!S_ISDIR(info.st_mode)) return refuse(directory, "is not a directory");
  if (info.st_uid != ::geteuid()) return refuse(directory, "belongs to another user");
  if ((info.st_mode & 077) != 0 && ::chmod(directory.c_str(), 0700) != 0)
    return refuse(directory, "is open to other users");
  return {};
}

Result<std::filesystem::path> make_socket_dir(const std::filesystem::path& owner) {
  std::error_code failed;
  const std::filesystem::path absolute =
      std::filesystem::absolute(owner, failed).lexically_normal();
  std::filesystem::path chosen = absolute / "s";
  const std::string name =
      fmt::format("flotilla-{}-{:016x}", ::geteuid(), hash_text(absolute.native()));
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (!fits(chosen) && runtime != nullptr && *runtime == '/')
    chosen = std::filesystem::path(runtime) / name;
  if (!fits(chosen)) chosen = std::filesystem::path("/tmp") / name;
  if (auto made = make_private_dir(chosen); !made) return fail(made.error());
  return chosen;
}

}  // namespace flotilla::platform
