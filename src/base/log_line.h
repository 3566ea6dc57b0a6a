#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/result.h"

// Lines with fields, as text (` name=value` after the words) or as one JSON object each, on stderr
// or in a file.
namespace flotilla::log {

enum class Form { Text, Json };
// "json"; another word is Text.
Form parse_form(std::string_view word);

// What a line tells beside its words: ` name=value` after them, or members of the object.
class Fields {
 public:
  struct Field {
    std::string name;
    std::string value;
    bool is_number = false;
  };
  Fields& add(std::string_view name, std::string_view value) & {
    list_.push_back({std::string(name), std::string(value)});
    return *this;
  }
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  Fields& add(std::string_view name, Number value) & {
    list_.push_back({std::string(name), fmt::format("{}", value), true});
    return *this;
  }
  const std::vector<Field>& list() const { return list_; }

 private:
  std::vector<Field> list_;
};
// Of a line that concerns a request.
Fields of_request(std::string_view id);

// Before threads start, after start(): how lines look from here on.
void set_form(Form form);
// From here on into this file instead of stderr. At `bytes_max` it becomes NAME.1.EXTENSION, of
// which at most `files_max` are kept. What cannot be written (disk full) is lost. The error names
// the file.
Result<void> write_to(const std::filesystem::path& file, std::uint64_t bytes_max,
                      std::size_t files_max);

// Without time, level and component, which are the sink's.
std::string line_of(Form form, std::string_view message, const Fields& fields);
void write(Level level, const Fields& fields, std::string_view message);

template <class... Args>
void info(const Fields& fields, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Info))
    write(Level::Info, fields, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(const Fields& fields, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Error))
    write(Level::Error, fields, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace flotilla::log
