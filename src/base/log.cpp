#include <algorithm>
#include <memory>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/json_text.h"
#include "base/log_line.h"

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

struct State {
  spdlog::logger logger{"flotilla", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  std::string component;
  Form form = Form::Text;
};

State& state() {
  static State instance = [] {
    State made;
    made.logger.set_level(spdlog::level::warn);
    made.logger.flush_on(spdlog::level::debug);
    return made;
  }();
  return instance;
}

void set_pattern() {
  const std::string pattern =
      state().form == Form::Json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","component":")" +
                                       state().component + R"(",%v})"
                                 : "%Y-%m-%dT%H:%M:%S.%eZ %l " + state().component + ": %v";
  state().logger.set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// In quotes where it could be taken for more than one word.
void append_word(std::string& out, std::string_view text) {
  const bool plain = !text.empty() && std::ranges::none_of(text, [](char c) {
    return is_control(c) || c == ' ' || c == '"' || c == '=';
  });
  if (plain) {
    out += text;
  } else {
    append_quoted(out, text);
  }
}

std::string text_line(std::string_view message, const Fields& fields) {
  std::string out(message);
  // Nobody's text begins a line of its own.
  std::ranges::replace_if(out, is_control, ' ');
  for (const Fields::Field& field : fields.list()) {
    out += " " + field.name + "=";
    append_word(out, field.value);
  }
  return out;
}

std::string json_line(std::string_view message, const Fields& fields) {
  std::string out = R"("message":)";
  append_quoted(out, message);
  for (const Fields::Field& field : fields.list()) {
    out += ",\"" + field.name + "\":";
    if (field.is_number) {
      out += field.value;
    } else {
      append_quoted(out, field.value);
    }
  }
  return out;
}

}  // namespace

Level parse_level(std::string_view word) {
  if (word == "debug") return Level::Debug;
  if (word == "warning") return Level::Warning;
  if (word == "error") return Level::Error;
  return Level::Info;
}

Form parse_form(std::string_view word) { return word == "json" ? Form::Json : Form::Text; }

Fields of_request(std::string_view id) {
  Fields fields;
  fields.add("request_id", id);
  return fields;
}

void start(std::string_view component, Level level) {
  state().logger.set_level(to_spdlog(level));
  state().component = component;
  set_pattern();
}

void set_form(Form form) {
  state().form = form;
  set_pattern();
}

Result<void> write_to(const std::filesystem::path& file, std::uint64_t bytes_max,
                      std::size_t files_max) {
  try {
    auto sink =
        std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(), bytes_max, files_max);
    state().logger.sinks() = {std::move(sink)};
  } catch (const spdlog::spdlog_ex& e) {
    return fail(Code::InvalidArgument,
                fmt::format("the log file cannot be written: {}; make its folder, or choose "
                            "another file",
                            e.what()));
  }
  set_pattern();
  return {};
}

std::string line_of(Form form, std::string_view message, const Fields& fields) {
  return form == Form::Json ? json_line(message, fields) : text_line(message, fields);
}

void write(Level level, const Fields& fields, std::string_view message) {
  const std::string line = line_of(state().form, message, fields);
  state().logger.log(to_spdlog(level), std::string_view(line));
}

void write(Level level, std::string_view message) { write(level, Fields(), message); }

bool enabled(Level level) { return state().logger.should_log(to_spdlog(level)); }

}  // namespace flotilla::log
