#include "platform/gpu_info.h"

#include <charconv>
#include <string>

#include "base/numbers.h"

namespace flotilla::platform {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::size_t kFields = 8;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// The name may have a comma; what follows it does not.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t comma = line.find(',', at);
    parts.push_back(trimmed(line.substr(at, comma - at)));
    if (comma == std::string_view::npos) break;
    at = comma + 1;
  }
  while (parts.size() > kFields) {
    parts[1] = {parts[1].data(),
                static_cast<std::size_t>(parts[2].data() + parts[2].size() - parts[1].data())};
    parts.erase(parts.begin() + 2);
  }
  return parts;
}

// "[N/A]", "[Not Supported]": nothing.
std::optional<double> number_of(std::string_view text) { return parse_double(text); }

std::int64_t bytes_of(std::string_view mebibytes) {
  return static_cast<std::int64_t>(number_of(mebibytes).value_or(0)) * kMebibyte;
}

}  // namespace

Command gpu_command() {
  Command command;
  command.program = "nvidia-smi";
  command.arguments = {
      "--query-gpu=index,name,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,"
      "power.draw",
      "--format=csv,noheader,nounits"};
  command.in = Stdio::Null;
  command.err = Stdio::Null;
  return command;
}

std::vector<Gpu> parse_gpus(std::string_view text) {
  std::vector<Gpu> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto fields = fields_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (fields.size() != kFields) continue;
    Gpu gpu;
    const auto [at, wrong] =
        std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), gpu.index);
    if (wrong != std::errc() || at != fields[0].data() + fields[0].size()) continue;
    gpu.name = std::string(fields[1]);
    gpu.memory_total = bytes_of(fields[2]);
    gpu.memory_used = bytes_of(fields[3]);
    gpu.memory_free = bytes_of(fields[4]);
    gpu.busy_percent = number_of(fields[5]);
    gpu.temperature_c = number_of(fields[6]);
    gpu.power_w = number_of(fields[7]);
    out.push_back(std::move(gpu));
  }
  return out;
}

}  // namespace flotilla::platform
