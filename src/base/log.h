#pragma once

#include <string_view>

#include <fmt/format.h>

// Lines on stderr: `2026-01-31T12:00:00.000Z info gateway: message key=value`. Never a prompt, an
// answer or a key. spdlog is in log.cpp only.
namespace flotilla::log {

enum class Level { Debug, Info, Warning, Error };
// "debug", "info", "warning", "error"; another word is Info.
Level parse_level(std::string_view word);

// Once, before threads start. `component` is named in each line: serve, runner, agent.
void start(std::string_view component, Level level);
void write(Level level, std::string_view message);
bool enabled(Level level);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Debug)) write(Level::Debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Info)) write(Level::Info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Warning))
    write(Level::Warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Error)) write(Level::Error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace flotilla::log
