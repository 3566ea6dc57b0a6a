#include "platform/mac.h"

#include <fmt/format.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "platform/memory_info.h"

namespace flotilla::platform {

std::int64_t metal_bytes(std::int64_t total, std::int64_t wired_limit_mb) {
  if (wired_limit_mb > 0) return wired_limit_mb << 20;
  constexpr std::int64_t kLarge = 36LL << 30;
  return total <= kLarge ? total / 3 * 2 : total / 4 * 3;
}

std::optional<std::int64_t> metal_bytes() {
#if defined(__APPLE__)
  std::int64_t limit = 0;
  std::size_t size = sizeof limit;
  if (::sysctlbyname("iogpu.wired_limit_mb", &limit, &size, nullptr, 0) != 0) return std::nullopt;
  return metal_bytes(memory_info().total_bytes, limit);
#else
  return std::nullopt;
#endif
}

std::optional<Command> awake_command(const std::string& platform, int pid) {
  if (!platform.starts_with("macos")) return std::nullopt;
  Command command;
  command.program = "caffeinate";
  command.arguments = {"-i", "-m", "-s", "-w", fmt::format("{}", pid)};
  command.in = command.out = command.err = Stdio::Null;
  return command;
}

}  // namespace flotilla::platform
