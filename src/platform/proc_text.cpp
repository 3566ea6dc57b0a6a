#include "platform/proc_text.h"

#include <charconv>
#include <fstream>

namespace flotilla::platform {
namespace {

constexpr std::size_t kFileMax = std::size_t{1} << 20;

std::optional<std::int64_t> leading_number(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// /proc/self/cgroup: "4:memory:/a/b" (v1), "0::/a/b" (v2).
std::optional<std::string> group_path(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto first = line.find(':');
    if (first == std::string_view::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controller.empty() && names.empty() && line.starts_with("0:")) return std::string(path);
    while (!controller.empty() && !names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      if (name == controller) return std::string(path);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string read_small_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  char chunk[4096];
  while (in && text.size() < kFileMax) {
    in.read(chunk, sizeof chunk);
    text.append(chunk, static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

std::optional<std::int64_t> read_number(const std::filesystem::path& file) {
  return leading_number(read_small_file(file));
}

std::optional<std::int64_t> find_number(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(name)) return leading_number(line.substr(name.size()));
    at += line.size() + 1;
  }
  return std::nullopt;
}

std::vector<std::filesystem::path> group_dirs(const std::filesystem::path& root,
                                              std::string_view controller) {
  const std::string groups = read_small_file(root / "proc/self/cgroup");
  const auto path = group_path(groups, controller);
  if (!path) return {};
  std::filesystem::path base = root / "sys/fs/cgroup";
  std::error_code failed;
  if (!controller.empty()) {
    base /= controller;
  } else if (std::filesystem::exists(base / "unified", failed)) {
    base /= "unified";  // v1 and v2 side by side
  }
  std::vector<std::filesystem::path> dirs;
  // In a container the path may name what is outside of its mount: those that are missing are
  // skipped.
  for (std::filesystem::path inner = std::filesystem::path(*path).relative_path();;
       inner = inner.parent_path()) {
    if (std::filesystem::is_directory(base / inner, failed)) dirs.push_back(base / inner);
    if (inner.empty()) break;
  }
  return dirs;
}

}  // namespace flotilla::platform
