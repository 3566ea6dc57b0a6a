#include "agent/runner_command.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace flotilla::agent {
namespace {

bool is_environment_name(std::string_view name) {
  const bool clean = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  return clean && name != "PATH" && name != "HOME" && !name.starts_with("LD_") &&
         !name.starts_with("DYLD_");
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace

std::filesystem::path runner_program(const std::filesystem::path& ours, int x86_level) {
  constexpr int built_for_all = 3;
  const auto others = ours.parent_path().parent_path() / "lib/flotilla";
  for (int level = x86_level; level > built_for_all; --level) {
    auto other = others / fmt::format("flotilla-x86-64-v{}", level);
    std::error_code failed;
    if (std::filesystem::is_regular_file(other, failed)) return other;
  }
  return ours;
}

void order_devices(std::map<std::string, std::string>& env) {
  if (env.contains("CUDA_VISIBLE_DEVICES")) env.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
}

std::string breadcrumb_of(const std::string& socket) { return socket + ".crumb"; }

Result<platform::Command> runner_command(const std::filesystem::path& program,
                                         const api::RunnerSpec& spec,
                                         const std::filesystem::path& model,
                                         const std::string& socket,
                                         const std::filesystem::path& cells_dir) {
  platform::Command command;
  command.program = program;
  command.arguments = {"runner", "--supervised", "--unix",
                       socket,   "--breadcrumb", breadcrumb_of(socket)};
  // One word each, so that no value can be taken for a flag.
  const auto text = [&](std::string_view flag, const std::string& value) {
    if (!value.empty()) command.arguments.push_back(fmt::format("{}={}", flag, value));
  };
  const auto number = [&](std::string_view flag, int value) {
    if (value != 0) command.arguments.push_back(fmt::format("{}={}", flag, value));
  };
  if (spec.synthetic) command.arguments.push_back("--synthetic");
  if (!spec.synthetic) text("--model", model.string());
  number("--width", spec.width);
  number("--context", spec.context);
  number("--window", spec.window);
  number("--threads", spec.threads);
  text("--kv-type", spec.kv_type);
  number("--gpu-layers", spec.gpu_layers);
  text("--chat-template", spec.chat_template);
  text("--speculate", spec.speculate);
  text("--alias", spec.alias);
  text("--node", spec.node);
  text("--cells-dir", cells_dir.string());
  for (const std::string& argument : command.arguments)
    if (has_nul(argument))
      return fail(Code::InvalidArgument, "a runner's setting holds a NUL byte");
  // The engine forks a debugger for a backtrace when it aborts; it looks before main() does.
  command.env.emplace("GGML_NO_BACKTRACE", "1");
  for (const auto& [name, value] : spec.env) {
    if (!is_environment_name(name) || has_nul(value))
      return fail(Code::InvalidArgument,
                  fmt::format("environment variable \"{}\" cannot be set for a runner", name));
    command.env[name] = value;
  }
  order_devices(command.env);
  return command;
}

}  // namespace flotilla::agent
