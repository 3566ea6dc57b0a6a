#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "base/check.h"
#include "config/file.h"
#include "config/wanted.h"
#include "config/yaml.h"
#include "fuzz/target.h"
#include "model/gguf_header.h"
#include "runner/cell_file.h"

// Files that somebody else may have written.
namespace flotilla::fuzz {
namespace {

namespace fs = std::filesystem;

void gguf(std::string_view bytes) {
  const auto header =
      model::parse_gguf_header({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (!header) return CHECK(!header.error().message.empty());
  CHECK(header->data_offset >= 0 && header->tensor_bytes >= 0 && header->vocabulary >= 0);
  CHECK(header->split_index >= 0 && header->split_index < header->split_count);
}

void yaml(std::string_view bytes) {
  const auto node = config::parse_yaml(bytes, "f.yaml");
  if (!node) return CHECK(node.error().message.starts_with("f.yaml:"));
  const std::string text = config::to_yaml(*node);
  const auto again = config::parse_yaml(text, "g.yaml");
  CHECK(again);
  CHECK(config::to_json(*again) == config::to_json(*node));
}

struct Options {
  std::string host;
  std::uint16_t port = 0;
  bool open = false;
  fs::path state;
  std::vector<std::string> names;
  double queue = 1;
};

void settings_file(std::string_view bytes) {
  Options options;
  const std::vector<config::Setting> table = {
      {.key = "host", .target = config::into(options.host)},
      {.key = "port", .target = config::into(options.port), .max = 65535},
      {.key = "open", .target = config::into(options.open)},
      {.key = "state", .target = config::into(options.state)},
      {.key = "names", .target = config::into(options.names)},
      {.key = "QUEUE",
       .target = {options.queue, [](const config::Value&) {}},
       .min = 1,
       .max = 9,
       .whole = false,
       .section = "knobs"}};
  const auto values = config::read_settings(table, bytes, "/etc/f.yaml");
  if (!values) return CHECK(values.error().message.starts_with("/etc/f.yaml:"));
  for (const auto& [name, found] : *values) {
    const auto setting =
        std::ranges::find_if(table, [&](const auto& one) { return one.name() == name; });
    CHECK(setting != table.end());
    setting->target.assign(found.value);
  }
}

void fleet_file(std::string_view bytes) {
  const auto wanted = config::read_wanted(bytes, "f.yaml", [](const char*) { return nullptr; });
  if (!wanted) CHECK(!wanted.error().message.empty());
}

// One file a process, in the memory of the machine where it can be.
const fs::path& scratch_file() {
  static const fs::path* file = [] {
    std::error_code none;
    const fs::path folder =
        fs::is_directory("/dev/shm", none) ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::atexit([] { std::remove(scratch_file().c_str()); });
    return new fs::path(folder / ("flotilla-fuzz-" + std::to_string(::getpid())));
  }();
  return *file;
}

void put(std::string_view bytes) {
  std::ofstream(scratch_file(), std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// As a file it is nobody's: its MAC cannot be right. As a conversation it comes back as it was, and
// not once a byte of it was changed.
void cell_file(std::string_view bytes) {
  constexpr std::string_view key = "a key of 32 bytes, as a runner's";
  put(bytes);
  CHECK(!runner::read_cell_file(scratch_file(), key));
  CHECK(!runner::read_cell_file_head(scratch_file(), key));

  const std::uint8_t changed = take_byte(bytes);
  runner::CellFileHead head;
  head.group = take_line(bytes).substr(0, 100);
  for (const char c : bytes) head.tokens.push_back(c);
  const auto* cells = reinterpret_cast<const std::byte*>(bytes.data());
  const auto size = runner::write_cell_file(scratch_file(), key, head, {cells, bytes.size()});
  CHECK(size);
  const auto back = runner::read_cell_file(scratch_file(), key);
  CHECK(back && back->head.group == head.group && back->head.tokens == head.tokens);
  CHECK(std::ranges::equal(back->cells, std::span(cells, bytes.size())));
  std::fstream file(scratch_file(), std::ios::binary | std::ios::in | std::ios::out);
  const auto at = static_cast<std::streamoff>(changed * *size / 256);
  file.seekg(at);
  const char other = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(other);
  file.close();
  CHECK(!runner::read_cell_file(scratch_file(), key));
}

}  // namespace

std::vector<Target> file_targets() {
  return {{"gguf", gguf},
          {"yaml", yaml},
          {"settings_file", settings_file},
          {"fleet_file", fleet_file},
          {"cell_file", cell_file}};
}

}  // namespace flotilla::fuzz
