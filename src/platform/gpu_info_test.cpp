#include "platform/gpu_info.h"

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

TEST(GpuInfo, EachLineIsOneDevice) {
  const auto gpus = parse_gpus(
      "0, NVIDIA H200, 143771, 1204, 142567, 37, 41, 118.52\n"
      "1, Odd, Comma Inc, 8192, 0, 8192, [N/A], 52, [Not Supported]\r\n");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(gpus[0].memory_total, 143771LL << 20);
  EXPECT_EQ(gpus[0].memory_used, 1204LL << 20);
  EXPECT_EQ(gpus[0].memory_free, 142567LL << 20);
  EXPECT_EQ(gpus[0].busy_percent, 37);
  EXPECT_EQ(gpus[0].temperature_c, 41);
  EXPECT_NEAR(gpus[0].power_w.value(), 118.52, 0.001);
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].name, "Odd, Comma Inc");
  EXPECT_FALSE(gpus[1].busy_percent);
  EXPECT_EQ(gpus[1].temperature_c, 52);
  EXPECT_FALSE(gpus[1].power_w);
}

TEST(GpuInfo, WordsAreNoDevices) {
  EXPECT_TRUE(parse_gpus("").empty());
  EXPECT_TRUE(parse_gpus("No devices were found\n").empty());
  EXPECT_TRUE(parse_gpus("NVIDIA-SMI has failed, because, it, could, not, talk, to, it\n").empty());
}

}  // namespace
}  // namespace flotilla::platform
