#include "platform/memory_info.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "platform/proc_text.h"

#if defined(__APPLE__)
#include <libproc.h>
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

namespace flotilla::platform {

#if defined(__APPLE__)

MemoryInfo memory_info(const std::filesystem::path&) {
  MemoryInfo info;
  std::uint64_t total = 0;
  std::size_t size = sizeof total;
  if (::sysctlbyname("hw.memsize", &total, &size, nullptr, 0) == 0)
    info.total_bytes = static_cast<std::int64_t>(total);
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (::host_statistics64(::mach_host_self(), HOST_VM_INFO64,
                          reinterpret_cast<host_info64_t>(&pages), &count) == KERN_SUCCESS)
    info.available_bytes =
        static_cast<std::int64_t>(pages.free_count + pages.inactive_count + pages.purgeable_count) *
        static_cast<std::int64_t>(::getpagesize());
  return info;
}

std::optional<std::int64_t> resident_bytes(int pid) {
  proc_taskinfo info{};
  if (::proc_pidinfo(pid, PROC_PIDTASKINFO, 0, &info, sizeof info) != sizeof info)
    return std::nullopt;
  return static_cast<std::int64_t>(info.pti_resident_size);
}

std::int64_t group_resident_bytes(int group) {
  std::array<pid_t, 1024> pids{};
  const int found = ::proc_listpgrppids(group, pids.data(), static_cast<int>(sizeof pids));
  std::int64_t bytes = 0;
  for (int i = 0; i < found && i < static_cast<int>(pids.size()); ++i)
    bytes += resident_bytes(pids[static_cast<std::size_t>(i)]).value_or(0);
  return bytes;
}

// zero_pages touches there.
std::int64_t untouched_bytes(int) { return 0; }

std::optional<std::int64_t> memory_kills(const std::filesystem::path&) { return std::nullopt; }

#else

namespace {

struct GroupFiles {
  const char* controller;
  const char* limit;
  const char* usage;
  const char* inactive;  // in memory.stat: page cache that is given back under pressure
};
constexpr GroupFiles kGroups[] = {
    {"", "memory.max", "memory.current", "inactive_file "},
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

void apply_group(const std::filesystem::path& dir, const GroupFiles& files, MemoryInfo& info) {
  const auto limit = read_number(dir / files.limit);
  if (!limit || *limit <= 0 || *limit >= info.total_bytes) return;  // v1 writes 2^63 for none
  const std::int64_t usage = read_number(dir / files.usage).value_or(0);
  const std::int64_t cache =
      find_number(read_small_file(dir / "memory.stat"), files.inactive).value_or(0);
  const std::int64_t used = std::max<std::int64_t>(0, usage - cache);
  info.total_bytes = *limit;
  info.available_bytes = std::min(info.available_bytes, std::max<std::int64_t>(0, *limit - used));
  info.limited_by_group = true;
}

}  // namespace

MemoryInfo memory_info(const std::filesystem::path& root) {
  const std::string text = read_small_file(root / "proc/meminfo");
  MemoryInfo info;
  info.total_bytes = find_number(text, "MemTotal:").value_or(0) * 1024;
  info.available_bytes = find_number(text, "MemAvailable:").value_or(0) * 1024;
  for (const GroupFiles& files : kGroups)
    for (const auto& dir : group_dirs(root, files.controller)) apply_group(dir, files, info);
  return info;
}

std::optional<std::int64_t> resident_bytes(int pid) {
  const std::string text = read_small_file(fmt::format("/proc/{}/status", pid));
  const auto kib = find_number(text, "VmRSS:");
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

std::int64_t group_resident_bytes(int group) {
  std::int64_t bytes = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    int pid = 0;
    const auto [number_end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || number_end != name.data() + name.size()) continue;
    // "pid (name) state parent group …"; a name may hold anything.
    const std::string stat = read_small_file(at->path() / "stat");
    const auto close = stat.rfind(')');
    if (close == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    int its_group = 0;
    std::istringstream fields(stat.substr(close + 1));
    if (!(fields >> state >> parent >> its_group) || its_group != group) continue;
    bytes += resident_bytes(pid).value_or(0);
  }
  return bytes;
}

std::int64_t untouched_bytes(int pid) {
  std::ifstream file(fmt::format("/proc/{}/smaps", pid));
  std::int64_t out = 0;
  std::int64_t size = 0;  // of the mapping whose lines these are, and what of it is taken
  std::int64_t taken = 0;
  bool ours = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.ends_with(':')) {  // FROM-TO rw-p OFFSET DEVICE INODE [PATH]
      std::string rights;
      std::string skipped;
      std::string inode;
      words >> rights >> skipped >> skipped >> inode;
      ours = rights == "rw-p" && inode == "0";
      size = taken = 0;
    } else if (name == "Size:") {
      words >> size;
    } else if (name == "Rss:" || name == "Swap:") {
      std::int64_t kib = 0;
      words >> kib;
      taken += kib;
    } else if (name == "VmFlags:" && ours && line.find(" dd") != std::string::npos &&
               line.find(" nr") == std::string::npos) {
      out += size - taken;  // not to be dumped, and a promise of memory: a sanitizer's is none
    }
  }
  return out * 1024;
}

std::optional<std::int64_t> memory_kills(const std::filesystem::path& root) {
  for (const auto& dir : group_dirs(root, ""))
    if (auto kills = find_number(read_small_file(dir / "memory.events"), "oom_kill ")) return kills;
  for (const auto& dir : group_dirs(root, "memory"))
    if (auto kills = find_number(read_small_file(dir / "memory.oom_control"), "oom_kill "))
      return kills;
  return find_number(read_small_file(root / "proc/vmstat"), "oom_kill ");
}

#endif

}  // namespace flotilla::platform
