#include "platform/machine.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "platform/cpu_info.h"
#include "platform/huge_pages.h"
#include "platform/memory_info.h"
#include "platform/proc_text.h"

namespace flotilla::platform {
namespace {

namespace fs = std::filesystem;

// A machine of text files.
class Machine : public testing::Test {
 protected:
  Machine() {
    char name[] = "/tmp/flotilla-test-XXXXXX";
    root_ = ::mkdtemp(name);
    write("proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\nMemAvailable:   8000 kB\n");
  }
  ~Machine() override { fs::remove_all(root_); }
  void write(const fs::path& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  fs::path root_;
};

#if defined(__x86_64__) && defined(__linux__)
TEST(CpuInfo, TheLevelIsWhatTheSystemNames) {
  const std::string text = read_small_file("/proc/cpuinfo");
  const auto begin = text.find("\nflags");
  ASSERT_NE(begin, std::string::npos);
  const std::string flags = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1) + " ";
  const auto has = [&](const char* flag) {
    return flags.find(std::string(" ") + flag + " ") != std::string::npos;
  };
  EXPECT_EQ(x86_level() >= 3, has("avx2") && has("bmi2") && has("fma"));
  EXPECT_EQ(x86_level() >= 4, has("avx512f") && has("avx512bw") && has("avx512vl"));
}
#endif

#if defined(__aarch64__) && defined(__linux__)
TEST(CpuInfo, ArmsFeaturesAreWhatTheSystemNames) {
  const std::string text = read_small_file("/proc/cpuinfo");
  const auto begin = text.find("\nFeatures");
  if (begin == std::string::npos) GTEST_SKIP() << "the system names none, as under qemu-user";
  const std::string names = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1) + " ";
  EXPECT_EQ(arm_features().dot_products, names.find(" asimddp ") != std::string::npos);
  EXPECT_EQ(arm_features().matrix_products, names.find(" i8mm ") != std::string::npos);
}
#endif

#if defined(__linux__)
TEST_F(Machine, CopiesOfOneDiskAreTwoMachinesAndContainersOfOneKernelOne) {
  const auto id_of = [&](const char* name, const char* boot) {
    write(fs::path(name) / "proc/sys/kernel/random/boot_id", boot);
    return machine_id(root_ / name);
  };
  write("a/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  write("copy/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  write("container/etc/machine-id", "fedcba9876543210fedcba9876543210\n");
  const std::string id = id_of("a", "11111111-1111-4111-8111-111111111111\n");
  EXPECT_NE(id_of("copy", "22222222-2222-4222-8222-222222222222\n"), id);
  EXPECT_EQ(id_of("container", "11111111-1111-4111-8111-111111111111\n"), id);
}
#endif

TEST_F(Machine, WithoutAGroupItsMemoryIsTheMachines) {
  const MemoryInfo info = memory_info(root_);
  EXPECT_EQ(info.total_bytes, 16000 * 1024);
  EXPECT_EQ(info.available_bytes, 8000 * 1024);
  EXPECT_FALSE(info.limited_by_group);
}

TEST_F(Machine, TheLeastLimitOfTheV2GroupsCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/memory.max", "4096000\n");
  write("sys/fs/cgroup/outer/memory.current", "3000000\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 1000000\n");
  const MemoryInfo info = memory_info(root_);
  EXPECT_EQ(info.total_bytes, 4096000);
  EXPECT_EQ(info.available_bytes, 4096000 - 2000000);
  EXPECT_TRUE(info.limited_by_group);
}

TEST_F(Machine, V1GroupsCountAndTheirHugeLimitsDoNot) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2048000\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "5048000\n");
  write("sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 0\n");
  write("sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n");
  const MemoryInfo info = memory_info(root_);
  EXPECT_EQ(info.total_bytes, 2048000);
  EXPECT_EQ(info.available_bytes, 0);
  EXPECT_EQ(memory_kills(root_), 3);
}

TEST_F(Machine, MemoryKillsAreThoseOfTheInnermostGroupElseTheMachines) {
  EXPECT_FALSE(memory_kills(root_));
  write("proc/vmstat", "pgfault 1\noom_kill 7\n");
  EXPECT_EQ(memory_kills(root_), 7);
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/memory.events", "oom 5\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(memory_kills(root_), 2);
}

TEST_F(Machine, AQuotaLimitsTheCores) {
  const int all = usable_cores(root_);
  EXPECT_GE(all, 1);
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root_), all);
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cores(root_), 1);
  fs::remove(root_ / "sys/fs/cgroup/a/cpu.max");
  write("proc/self/cgroup", "3:cpu,cpuacct:/b\n");
  write("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root_), all);
  write("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(usable_cores(root_), 1);
}

TEST_F(Machine, BusySecondsLeaveIdleAndWaitingOut) {
  EXPECT_FALSE(busy_core_seconds(root_));
  write("proc/stat", "cpu  100 0 50 9999 9999 25 25 9999 0 0\ncpu0 1 2 3\n");
  const double rate = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(busy_core_seconds(root_).value(), 200 / rate);
  write("proc/stat", "cpu  100 x");
  EXPECT_FALSE(busy_core_seconds(root_));
}

#ifdef __linux__
TEST(ThisMachine, ZeroedMemoryIsTakenWhenItIsTouched) {
  constexpr std::int64_t kSize = 64 << 20;
  void* const memory =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const bytes = static_cast<unsigned char*>(memory);
  std::memset(memory, 1, kSize);
  const std::int64_t before = untouched_bytes(::getpid());
  zero_pages(bytes + 100, kSize / 2);
  EXPECT_NEAR(static_cast<double>(untouched_bytes(::getpid()) - before), kSize / 2, 1 << 16);
  EXPECT_EQ(bytes[99], 1);
  EXPECT_EQ(bytes[100], 0);
  EXPECT_EQ(bytes[kSize / 4], 0);
  EXPECT_EQ(bytes[kSize / 2 + 99], 0);
  EXPECT_EQ(bytes[kSize / 2 + 100], 1);
  std::memset(memory, 1, kSize / 2);
  EXPECT_NEAR(static_cast<double>(untouched_bytes(::getpid()) - before), 0, 1 << 16);
  zero_pages(bytes, 10);
  EXPECT_EQ(bytes[9], 0);
  EXPECT_EQ(bytes[10], 1);
  ::munmap(memory, kSize);
}
#endif

TEST(ThisMachine, IsKnown) {
  EXPECT_EQ(machine_id(), machine_id());
  EXPECT_EQ(machine_id().size(), 32U);
  EXPECT_GT(memory_info().total_bytes, 0);
  EXPECT_GT(memory_info().available_bytes, 0);
  EXPECT_GT(resident_bytes(::getpid()).value(), 100'000);
  EXPECT_FALSE(resident_bytes(-1));
  EXPECT_EQ(untouched_bytes(-1), 0);
  EXPECT_NE(platform_name().find('-'), std::string::npos);
}

TEST(ThisMachine, StateGoesWhereTheEnvironmentSays) {
  ::setenv("XDG_STATE_HOME", "/x/y", 1);
  EXPECT_EQ(default_state_dir(), "/x/y/flotilla");
  ::unsetenv("XDG_STATE_HOME");
  ::setenv("HOME", "/home/u", 1);
  EXPECT_EQ(default_state_dir(), "/home/u/.local/state/flotilla");
}

TEST(ProcText, NumbersAreFoundByTheNameThatBeginsALine) {
  EXPECT_EQ(find_number("a 1\nab 2\nb: 3 kB\n", "ab "), 2);
  EXPECT_EQ(find_number("a 1\nb: 3 kB", "b:"), 3);
  EXPECT_FALSE(find_number("xa 1\n", "a "));
  EXPECT_FALSE(find_number("a max\n", "a "));
  EXPECT_FALSE(find_number("", "a"));
  EXPECT_FALSE(read_number("/no/such/file"));
}

}  // namespace
}  // namespace flotilla::platform
