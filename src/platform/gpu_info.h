#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/process.h"

namespace flotilla::platform {

// One accelerator, as the platform's own tool tells.
struct Gpu {
  int index = 0;
  std::string name;
  std::int64_t memory_total = 0;
  std::int64_t memory_used = 0;
  std::int64_t memory_free = 0;
  std::optional<double> busy_percent;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
};

// nvidia-smi, by its arguments; where it is not installed there is nothing to tell.
Command gpu_command();
// What it prints: a line for each device. A line that is none is left out.
std::vector<Gpu> parse_gpus(std::string_view text);

}  // namespace flotilla::platform
