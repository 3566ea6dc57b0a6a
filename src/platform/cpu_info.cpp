#include "platform/cpu_info.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sched.h>
#include <string>
#include <string_view>
#include <unistd.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "platform/proc_text.h"

namespace flotilla::platform {
namespace {

int affinity_cores() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines of more than 1,024 cores; then all that are online are counted.
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// quota/period of a group, rounded up; nullopt without a quota.
std::optional<int> to_cores(std::optional<std::int64_t> quota, std::optional<std::int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<int>(std::min<std::int64_t>((*quota + *period - 1) / *period, 1 << 16));
}

}  // namespace

int usable_cores(const std::filesystem::path& root) {
  int cores = affinity_cores();
  for (const auto& dir : group_dirs(root, "")) {
    const std::string text = read_small_file(dir / "cpu.max");  // "200000 100000" or "max 100000"
    const auto space = text.find(' ');
    if (space == std::string::npos) continue;
    const auto period = find_number(std::string_view(text).substr(space), " ");
    if (auto limit = to_cores(find_number(text, ""), period)) cores = std::min(cores, *limit);
  }
  for (const auto& dir : group_dirs(root, "cpu")) {
    const auto limit =
        to_cores(read_number(dir / "cpu.cfs_quota_us"), read_number(dir / "cpu.cfs_period_us"));
    if (limit) cores = std::min(cores, *limit);
  }
  return std::max(1, cores);
}

std::string platform_name() {
#if defined(__APPLE__)
  std::string name = "macos-";
#else
  std::string name = "linux-";
#endif
#if defined(__x86_64__)
  return name + "x86_64";
#elif defined(__aarch64__) && defined(__APPLE__)
  return name + "arm64";
#elif defined(__aarch64__)
  return name + "aarch64";
#else
  return name + "unknown";
#endif
}

int x86_level() {
#if defined(__x86_64__)
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (!v2) return 1;
  if (!v3) return 2;
  return v4 ? 4 : 3;
#else
  return 0;
#endif
}

ArmFeatures arm_features() {
#if defined(__aarch64__) && defined(__linux__)
  // <asm/hwcap.h>: ASIMDDP of AT_HWCAP, I8MM of AT_HWCAP2.
  return {.dot_products = (::getauxval(AT_HWCAP) >> 20 & 1) != 0,
          .matrix_products = (::getauxval(AT_HWCAP2) >> 13 & 1) != 0};
#elif defined(__aarch64__) && defined(__APPLE__)
  int i8mm = 0;
  std::size_t size = sizeof i8mm;
  const int failed = ::sysctlbyname("hw.optional.arm.FEAT_I8MM", &i8mm, &size, nullptr, 0);
  // Every Mac of this kind has dot products; older systems do not name the other.
  return {.dot_products = true, .matrix_products = failed == 0 && i8mm != 0};
#else
  return {};
#endif
}

// "cpu  user nice system idle iowait irq softirq steal …" in ticks.
std::optional<double> busy_core_seconds(const std::filesystem::path& root) {
  const std::string text = read_small_file(root / "proc/stat");
  if (!text.starts_with("cpu ")) return std::nullopt;
  std::array<std::int64_t, 8> ticks{};
  const char* at = text.data() + 3;
  const char* end = text.data() + std::min(text.size(), text.find('\n'));
  for (std::int64_t& field : ticks) {
    while (at < end && *at == ' ') ++at;
    const auto [next, error] = std::from_chars(at, end, field);
    if (error != std::errc{}) return std::nullopt;
    at = next;
  }
  const std::int64_t busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
  const long rate = ::sysconf(_SC_CLK_TCK);
  return static_cast<double>(busy) / static_cast<double>(rate > 0 ? rate : 100);
}

}  // namespace flotilla::platform
