#include "agent/supervisor.h"

#include <set>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "agent/engine_command.h"
#include "agent/runner_command.h"
#include "agent/work.h"
#include "base/log.h"
#include "base/sha256.h"
#include "platform/memory_info.h"

namespace flotilla::agent {
namespace {

constexpr std::size_t kRunnersMax = 256;

}  // namespace

Supervisor::Supervisor(Options options)
    : options_(std::move(options)),
      all_ended_(options_.executor, boost::asio::steady_timer::time_point::max()) {
  note_memory_kills();
}

void Supervisor::note_memory_kills() { memory_kills_ = platform::memory_kills().value_or(0); }

// Each kill that was counted is blamed on one runner.
bool Supervisor::take_memory_kill() {
  if (platform::memory_kills().value_or(0) <= memory_kills_) return false;
  ++memory_kills_;
  return true;
}

void Supervisor::say_not_started(const std::string& replica, std::string reason) {
  log::warning("replica {} cannot be started: {}", replica, reason);
  api::ReplicaExited exited;
  exited.replica = replica;
  exited.reason = std::move(reason);
  options_.on_event(std::move(exited));
}

void Supervisor::start(const api::StartReplica& start) {
  const auto found = runners_.find(start.replica);
  if (found != runners_.end()) {
    if (found->second.generation != start.generation)
      log::warning("replica {} runs already, of generation {}", start.replica,
                   found->second.generation);
    else if (found->second.process)
      found->second.process->repeat_events();
    return;
  }
  if (ending_) return say_not_started(start.replica, "the agent is ending");
  if (runners_.size() >= kRunnersMax) return say_not_started(start.replica, "too many runners");
  runners_[start.replica].generation = start.generation;
  boost::asio::co_spawn(options_.executor, run(start), boost::asio::detached);
}

Awaitable<void> Supervisor::run(api::StartReplica start) {
  std::function<Result<ServedModel>()> find = [spec = start.spec] { return find_served(spec); };
  const auto served = co_await on_pool(*options_.disk, std::move(find));
  Runner& runner = runners_.at(start.replica);
  std::string trouble;
  if (runner.stop_asked)
    trouble = "stopped";
  else if (!served)
    trouble = served.error().message;
  else if (served->folder && !served->by_engine)
    trouble = fmt::format("{} is a model folder, which an engine has to serve",
                          served->files.first.string());
  if (trouble.empty()) {
    auto process =
        served->by_engine ? spawn_engine(start, *served) : spawn(start, served->files.first);
    if (process)
      runner.process = std::move(*process);
    else
      trouble = process.error().message;
  }
  std::optional<api::ReplicaExited> exited;
  if (trouble.empty()) {
    const auto process = runner.process;
    exited = co_await process->run();
    if (served->by_engine) co_await judge_port(start.replica, *exited);
    std::error_code ignored;
    if (!served->by_engine) std::filesystem::remove(process->held().socket, ignored);
    if (runner.stop_asked) {
      std::function<std::uintmax_t()> clean = [folder = cells_of(start)] {
        std::error_code failed;
        return std::filesystem::remove_all(folder, failed);
      };
      co_await on_pool(*options_.disk, std::move(clean));
    }
  }
  // Gone from the list before it is said: who hears of the end finds it nowhere any more.
  runners_.erase(start.replica);
  if (exited)
    options_.on_event(std::move(*exited));
  else
    say_not_started(start.replica, std::move(trouble));
  if (runners_.empty()) all_ended_.cancel();
}

// The same for each attempt of a replica: one that died finds its conversations there.
std::filesystem::path Supervisor::cells_of(const api::StartReplica& start) const {
  const std::string_view parts[] = {start.generation, "\n", start.spec.node, "\n",
                                    start.spec.alias};
  return options_.cells_dir / hex_text(sha256(parts)).substr(0, 16);
}

Result<std::shared_ptr<RunnerProcess>> Supervisor::spawn(const api::StartReplica& start,
                                                         const std::filesystem::path& model) {
  const std::string socket =
      options_.socket_dir / fmt::format("{}-{}.sock", platform::own_pid(), next_socket_++);
  std::error_code ignored;
  std::filesystem::remove(socket, ignored);
  auto command = runner_command(options_.program, start.spec, model, socket, cells_of(start));
  if (!command) return fail(command.error());
  auto process = platform::Process::spawn(*command);
  if (!process) return fail(process.error());
  log::info("replica {}: pid {}", start.replica, process->pid());
  const std::string log_name = log_file_name(start.spec.node, start.spec.alias);
  RunnerProcess::Options about{.executor = options_.executor,
                               .replica = start.replica,
                               .generation = start.generation,
                               .socket = socket,
                               .log_file = options_.log_dir / log_name,
                               .on_event = options_.on_event,
                               .take_memory_kill = [this] { return take_memory_kill(); }};
  return std::make_shared<RunnerProcess>(std::move(about), std::move(*process));
}

Result<std::shared_ptr<RunnerProcess>> Supervisor::spawn_engine(const api::StartReplica& start,
                                                                const ServedModel& served) {
  std::set<int> given;
  for (const auto& [replica, runner] : runners_) given.insert(runner.port);
  const auto port = choose_port(options_.executor, given);
  if (!port) return fail(port.error());
  auto command = engine_command(options_.program, start.spec, served.files.first, *port);
  if (!command) return fail(command.error());
  auto process = platform::Process::spawn(*command);
  if (!process) return fail(process.error());
  log::info("replica {}: {} at port {}, pid {}", start.replica, start.spec.engine->name, *port,
            process->pid());
  runners_.at(start.replica).port = *port;
  const std::string log_name = log_file_name(start.spec.node, start.spec.alias);
  RunnerProcess::Options about{.executor = options_.executor,
                               .replica = start.replica,
                               .generation = start.generation,
                               .socket = address_of(*port),
                               .engine = start.spec.engine->name,
                               .model_bytes = served.files.bytes,
                               .log_file = options_.log_dir / log_name,
                               .on_event = options_.on_event,
                               .take_memory_kill = [this] { return take_memory_kill(); }};
  return std::make_shared<RunnerProcess>(std::move(about), std::move(*process));
}

// An engine listens long after its port was chosen, and one that finds it taken ends.
Awaitable<void> Supervisor::judge_port(std::string replica, api::ReplicaExited& exited) {
  if (exited.exit_code.value_or(0) == 0 || runners_.at(replica).stop_asked) co_return;
  const int port = runners_.at(replica).port;
  const bool taken = co_await is_listened_at(options_.executor, port);
  // As the system calls it, in the engine's last line: somebody may have it without listening.
  if (!taken && exited.reason.find("ddress already in use") == std::string::npos) co_return;
  exited.port_taken = true;
  exited.own_fault = false;
  exited.reason = fmt::format("another program took {} before it could listen there: {}",
                              address_of(port), exited.reason);
}

void Supervisor::stop(const std::string& replica, std::chrono::milliseconds grace) {
  const auto found = runners_.find(replica);
  if (found == runners_.end()) return say_not_started(replica, "it is not here");
  found->second.stop_asked = true;
  if (found->second.process) found->second.process->stop(grace);
}

Awaitable<void> Supervisor::stop_all(std::chrono::milliseconds grace) {
  ending_ = true;
  for (auto& [replica, runner] : runners_) {
    runner.stop_asked = true;
    if (runner.process) runner.process->stop(grace);
  }
  while (!runners_.empty()) co_await all_ended_.async_wait(kAwait);
}

std::vector<api::HeldReplica> Supervisor::holds() const {
  std::vector<api::HeldReplica> out;
  for (const auto& [replica, runner] : runners_) {
    if (runner.process)
      out.push_back(runner.process->held());
    else
      out.push_back({.replica = replica, .generation = runner.generation});
  }
  return out;
}

std::vector<int> Supervisor::pids() const {
  std::vector<int> out;
  for (const auto& [replica, runner] : runners_)
    if (runner.process) out.push_back(runner.process->pid());
  return out;
}

std::vector<api::ReplicaUsage> Supervisor::usage() const {
  std::vector<api::ReplicaUsage> out;
  for (const auto& [replica, runner] : runners_)
    if (runner.process) out.push_back({replica, runner.process->resident_bytes()});
  return out;
}

}  // namespace flotilla::agent
