#include "platform/machine.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "platform/proc_text.h"

#if defined(__APPLE__)
#include <ctime>
#include <uuid/uuid.h>
#endif

namespace flotilla::platform {
namespace {

std::uint64_t mix(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash ^ (hash >> 31);
}

std::string system_id([[maybe_unused]] const std::filesystem::path& root) {
#if defined(__APPLE__)
  uuid_t id{};
  const timespec wait{.tv_sec = 1, .tv_nsec = 0};
  if (::gethostuuid(id, &wait) == 0)
    return std::string(reinterpret_cast<const char*>(id), sizeof id);
#endif
  // The running kernel's first: machines that are copies of one disk have the same machine-id and
  // memory of their own, and containers of one kernel share its memory.
  for (const char* file :
       {"proc/sys/kernel/random/boot_id", "etc/machine-id", "var/lib/dbus/machine-id"}) {
    const std::string id = read_small_file(root / file);
    if (id.size() >= 16) return id;
  }
  return "host " + host_name();
}

}  // namespace

std::string machine_id(const std::filesystem::path& root) {
  const std::string id = system_id(root);
  return fmt::format("{:016x}{:016x}", mix(id, 0xCBF29CE484222325ULL),
                     mix(id, 0x9E3779B97F4A7C15ULL));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::filesystem::path default_state_dir() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::filesystem::path(state) / "flotilla";
  const char* home = std::getenv("HOME");
  const std::filesystem::path base = home != nullptr && *home == '/' ? home : "/tmp";
#if defined(__APPLE__)
  return base / "Library/Application Support/flotilla";
#else
  return base / ".local/state/flotilla";
#endif
}

}  // namespace flotilla::platform
