#include "agent/agent.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/model_copy.h"
#include "api/model_copy.h"
#include "base/log.h"
#include "cli/commands.h"
#include "platform/held_program.h"
#include "platform/machine.h"

namespace flotilla::cli {
namespace {

// For an engine whose agent is gone, before it is killed.
constexpr std::chrono::milliseconds kEngineGrace{5000};

}  // namespace

void add_agent_command(const App& app, CommandResult& result) {
  struct Flags {
    std::string state_id = "none";
    std::string run_dir;
    int grace_s = 0;
    bool detach = false;
    bool hold = false;
    std::string copy;
    bool hold_engine = false;
    std::vector<std::string> engine;
  };
  auto flags = std::make_shared<Flags>();
  const auto command = app.add_subcommand("agent",
                                          "Starts and watches runners on this machine; started by "
                                          "serve, speaks on stdin and stdout.\n\n"
                                          "Example, as serve does it on another machine:\n"
                                          "  ssh mini-a flotilla agent --state-id ID --detach");
  command.add_option("--state-id", flags->state_id, "Which gateway's runners these are");
  command.add_option("--run-dir", flags->run_dir,
                     "Lock, logs and sockets (default: agent in the state directory)");
  command
      .add_option("--grace", flags->grace_s,
                  "Seconds that runners outlive a gateway that went away")
      .environment("AGENT_GRACE_S")
      .between(0, 86400);
  const auto detach = command.add_flag("--detach", flags->detach,
                                       "Leaves the runners to a process of its own, so that an ssh "
                                       "that ends does not wait for them");
  command.add_flag("--hold", flags->hold, "That process").excludes(detach).hidden();
  command.add_option("--copy", flags->copy, "One end of a model's copy, then ends").hidden();
  command
      .add_flag("--hold-engine", flags->hold_engine,
                "Runs the program that follows until stdin ends")
      .hidden();
  command.add_option("engine", flags->engine).hidden();
  command.callback([flags, &result] {
    if (flags->hold_engine) {
      result.exit_code =
          flags->engine.empty() ? 2 : platform::hold_program(flags->engine, kEngineGrace);
      return;
    }
    log::start("agent", log::Level::Info);
    if (!flags->copy.empty()) {
      const auto task = api::parse_copy_task(flags->copy);
      if (!task) log::error("{}", task.error().message);
      result.exit_code = task ? agent::run_copy(*task) : 2;
      return;
    }
    agent::AgentOptions options;
    options.state_id = flags->state_id;
    options.run_dir = flags->run_dir.empty() ? platform::default_state_dir() / "agent"
                                             : std::filesystem::path(flags->run_dir);
    options.grace = std::chrono::seconds(flags->grace_s);
    options.version = FLOTILLA_VERSION;
    if (flags->detach) options.role = agent::AgentOptions::Role::Pipe;
    if (flags->hold) options.role = agent::AgentOptions::Role::Holder;
    result.exit_code = agent::run_agent(options);
  });
}

}  // namespace flotilla::cli
