#include "base/log.h"

#include <memory>
#include <string>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace flotilla::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug: return spdlog::level::debug;
    case Level::Info: return spdlog::level::info;
    case Level::Warning: return spdlog::level::warn;
    case Level::Error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("flotilla",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

}  // namespace

Level parse_level(std::string_view word) {
  if (word == "debug") return Level::Debug;
  if (word == "warning") return Level::Warning;
  if (word == "error") return Level::Error;
  return Level::Info;
}

void start(std::string_view component, Level level) {
  logger().set_level(to_spdlog(level));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %l " + std::string(component) + ": %v",
      spdlog::pattern_time_type::utc);
  logger().set_formatter(std::move(formatter));
}

void write(Level level, std::string_view message) { logger().log(to_spdlog(level), message); }

bool enabled(Level level) { return logger().should_log(to_spdlog(level)); }

}  // namespace flotilla::log
