#include "config/layers.h"

#include <fmt/format.h>

namespace flotilla::config {
namespace {

std::unexpected<Error> wrong(std::string_view name, const Error& error) {
  return fail(Code::InvalidArgument, fmt::format("{} is {}", name, error.message));
}

}  // namespace

Result<std::vector<Resolved>> resolve(std::span<const Setting> settings, const Layers& layers) {
  std::vector<Resolved> out;
  for (const Setting& setting : settings) {
    Resolved one{
        .setting = &setting, .value = setting.target.standard, .source = "default", .where = {}};
    if (const auto file = layers.file.find(setting.name()); file != layers.file.end()) {
      one.value = file->second.value;
      one.source = "file";
      one.where = fmt::format("line {}", file->second.line);
    }
    const char* variable = setting.environment.empty() || !layers.environment
                               ? nullptr
                               : layers.environment(setting.environment.c_str());
    if (variable != nullptr && *variable != '\0') {
      auto value = read_value(setting, std::string_view(variable));
      if (!value) return wrong(setting.environment, value.error());
      one.value = std::move(*value);
      one.source = "environment";
      one.where = setting.environment;
    }
    if (const auto flag = layers.flags.find(setting.name()); flag != layers.flags.end()) {
      auto value = read_value(setting, std::string_view(flag->second));
      if (!value) return wrong(setting.flag.empty() ? setting.name() : setting.flag, value.error());
      one.value = std::move(*value);
      one.source = "flag";
      one.where = setting.flag;
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace flotilla::config
