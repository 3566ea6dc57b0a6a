#include "agent/agent.h"

#include <csignal>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fmt/format.h>

#include "agent/gateway_link.h"
#include "agent/gpu_watch.h"
#include "agent/hold.h"
#include "agent/model_hashes.h"
#include "agent/preflight.h"
#include "agent/runner_command.h"
#include "agent/runner_log.h"
#include "agent/supervisor.h"
#include "agent/telemetry.h"
#include "agent/work.h"
#include "base/log.h"
#include "model/model_files.h"
#include "platform/cpu_info.h"
#include "platform/files.h"
#include "platform/mac.h"
#include "platform/machine.h"
#include "platform/memory_info.h"
#include "platform/process.h"
#include "platform/socket_dir.h"

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;

constexpr std::chrono::seconds kTelemetryEvery{2};
constexpr std::chrono::milliseconds kStopGrace{5000};
constexpr std::chrono::seconds kHashLimit{5};  // of a preflight; the next one has it
constexpr std::size_t kMissedMax = 256;
constexpr std::chrono::seconds kFirstGateway{30};
constexpr std::chrono::milliseconds kTryAgain{100};
constexpr int kTries = 100;

// The agent that holds the run directory. All on one thread; everything in it ends before run()
// does.
class Agent {
 public:
  Agent(Executor executor, boost::asio::thread_pool& disk, const AgentOptions& options, Hold hold,
        Supervisor::Options runners)
      : executor_(std::move(executor)),
        disk_(disk),
        options_(options),
        hold_(std::move(hold)),
        supervisor_([&] {
          runners.on_event = [this](api::AgentEvent event) { say(std::move(event)); };
          return std::move(runners);
        }()),
        hashes_(executor_, options.run_dir / "model-hashes"),
        gpus_(executor_),
        arrival_(executor_, steady_timer::time_point::max()) {}

  Awaitable<void> run() {
    co_await (serve_gateways() || accept() || send_telemetry() || gpus_.run() || wait_for_signal());
    link_.reset();
    co_await supervisor_.stop_all(stop_grace_);
  }

 private:
  Awaitable<void> serve_gateways();
  Awaitable<void> serve(Hold::Attached pipes);
  Awaitable<void> accept();
  Awaitable<void> send_telemetry();
  Awaitable<void> wait_for_signal();
  Awaitable<void> answer(api::AgentCommand question);
  Awaitable<std::string> hash_of(api::RunnerSpec spec);
  void take(api::AgentCommand command);
  void stay_awake(bool wanted);
  void say(api::AgentEvent event);
  api::AgentHello hello() const;

  Executor executor_;
  boost::asio::thread_pool& disk_;
  const AgentOptions& options_;
  Hold hold_;
  Supervisor supervisor_;
  SystemClock clock_;
  ModelHashes hashes_;
  GpuWatch gpus_;
  platform::Process awake_;                // keeps a Mac from falling asleep while runners live
  std::shared_ptr<GatewayLink> link_;      // null while no gateway is there
  std::shared_ptr<GatewayLink> parting_;   // told us to end: stays open until the runners have
  std::optional<Hold::Attached> next_;     // has come, is to be served
  steady_timer arrival_;                   // cancelled when next_ is set
  std::deque<api::ReplicaExited> missed_;  // ended while no gateway was there
  std::chrono::milliseconds stop_grace_ = kStopGrace;
  bool ending_ = false;
};

// Returns when the runners are to end.
Awaitable<void> Agent::serve_gateways() {
  if (options_.role == AgentOptions::Role::Holder) {
    // Our stderr went to whoever started us, and must not keep them.
    platform::redirect_stderr(options_.run_dir / "agent.log");
    arrival_.expires_after(kFirstGateway);
    co_await arrival_.async_wait(kAwait);
  } else {
    next_ = Hold::Attached{platform::take_stdio(0), platform::take_stdio(1)};
  }
  while (next_) {
    Hold::Attached pipes = std::move(*std::exchange(next_, std::nullopt));
    co_await serve(std::move(pipes));
    if (ending_) co_return;
    if (next_ || options_.grace.count() == 0) continue;
    // Our stderr went to the gateway, too.
    platform::redirect_stderr(options_.run_dir / "agent.log");
    log::info("keeping {} runners for {} s", supervisor_.holds().size(), options_.grace.count());
    arrival_.expires_after(options_.grace);
    co_await arrival_.async_wait(kAwait);
  }
  log::info("no gateway: ending");
}

Awaitable<void> Agent::serve(Hold::Attached pipes) {
  GatewayLink::Options about{
      .executor = executor_, .clock = &clock_, .on_command = [this](api::AgentCommand command) {
        take(std::move(command));
      }};
  link_ =
      std::make_shared<GatewayLink>(std::move(about), std::move(pipes.in), std::move(pipes.out));
  const auto link = link_;
  link->send(hello());
  for (api::ReplicaExited& exited : std::exchange(missed_, {})) link->send(std::move(exited));
  const std::string reason = co_await link->run();
  link_.reset();
  if (ending_) parting_ = link;
  log::info("link closed: {}", reason);
}

// A gateway that comes again takes the place of its old link, which may hang half open.
Awaitable<void> Agent::accept() {
  for (;;) {
    auto attached = co_await hold_.next();
    if (!attached) continue;
    next_ = std::move(attached);
    arrival_.cancel();
    if (link_) link_->cut("the gateway came again");
  }
}

Awaitable<void> Agent::send_telemetry() {
  Telemetry telemetry(clock_);
  steady_timer timer(executor_);
  for (;;) {
    api::AgentTelemetry numbers = telemetry.look();
    supervisor_.note_memory_kills();
    numbers.replicas = supervisor_.usage();
    numbers.gpus = gpus_.known();
    stay_awake(!numbers.replicas.empty());
    if (link_) link_->send(std::move(numbers));
    timer.expires_after(kTelemetryEvery);
    co_await timer.async_wait(kAwait);
  }
}

Awaitable<void> Agent::wait_for_signal() {
  boost::asio::signal_set signals(executor_, SIGTERM, SIGINT);
  const auto [error, signal] = co_await signals.async_wait(kAwait);
  if (!error) log::info("{}: ending", platform::signal_name(signal));
}

void Agent::stay_awake(bool wanted) {
  (void)awake_.poll();
  if (wanted == awake_.running()) return;
  if (!wanted) {
    awake_ = {};
    return;
  }
  const auto command = platform::awake_command(platform::platform_name(), platform::own_pid());
  if (!command) return;
  if (auto started = platform::Process::spawn(*command)) awake_ = std::move(*started);
}

void Agent::say(api::AgentEvent event) {
  if (link_) return link_->send(event);
  if (auto* exited = std::get_if<api::ReplicaExited>(&event)) {
    missed_.push_back(std::move(*exited));
    if (missed_.size() > kMissedMax) missed_.pop_front();
  }
}

void Agent::take(api::AgentCommand command) {
  if (const auto* start = std::get_if<api::StartReplica>(&command)) {
    supervisor_.start(*start);
  } else if (const auto* stop = std::get_if<api::StopReplica>(&command)) {
    supervisor_.stop(stop->replica, std::chrono::milliseconds(stop->grace_ms));
  } else if (const auto* end = std::get_if<api::EndAgent>(&command)) {
    ending_ = true;
    stop_grace_ = std::chrono::milliseconds(end->grace_ms);
    link_->cut("the gateway ends");
  } else if (!std::holds_alternative<api::AttachAgent>(command)) {
    boost::asio::co_spawn(executor_, answer(std::move(command)), boost::asio::detached);
  }
}

Awaitable<void> Agent::answer(api::AgentCommand question) {
  if (const auto* list = std::get_if<api::ListModels>(&question)) {
    std::function<api::ModelList()> work = [list = *list] { return answer_list_models(list); };
    api::ModelList found = co_await on_pool(disk_, std::move(work));
    say(std::move(found));
  } else if (const auto* preflight = std::get_if<api::Preflight>(&question)) {
    std::function<api::PreflightAnswer()> work = [asked = *preflight, gpus = gpus_.known(),
                                                  runners = supervisor_.pids()] {
      return answer_preflight(asked, gpus, runners);
    };
    api::PreflightAnswer verdict = co_await on_pool(disk_, std::move(work));
    if (preflight->hash && verdict.model_present && !preflight->spec.synthetic)
      verdict.hash = co_await hash_of(preflight->spec);
    say(std::move(verdict));
  } else if (const auto* wanted = std::get_if<api::ReadLog>(&question)) {
    const auto file = options_.run_dir / "logs" / log_file_name(wanted->node, wanted->alias);
    std::function<api::LogText()> work = [file, asked = *wanted] {
      api::LogText text = read_log(file, asked.offset);
      text.request = asked.request;
      return text;
    };
    api::LogText text = co_await on_pool(disk_, std::move(work));
    say(std::move(text));
  }
}

Awaitable<std::string> Agent::hash_of(api::RunnerSpec spec) {
  std::function<Result<model::ModelFileSet>()> find = [spec] {
    auto file = model::find_model(spec.model, spec.models_dir);
    return file ? file : model::find_model_folder(spec.model, spec.models_dir);
  };
  auto files = co_await on_pool(disk_, std::move(find));
  if (!files) co_return std::string();
  std::string hash = co_await hashes_.find(std::move(*files), kHashLimit);
  co_return hash;
}

api::AgentHello Agent::hello() const {
  api::AgentHello out;
  out.version = options_.version;
  out.platform = platform::platform_name();
  out.machine_id = platform::machine_id();
  out.run_dir = options_.run_dir;
  out.cores = platform::usable_cores();
  out.memory_bytes = platform::memory_info().total_bytes;
  out.holds = supervisor_.holds();
  return out;
}

// To whoever is at our stdout, when we cannot serve.
void refuse(const std::string& reason) {
  log::error("{}", reason);
  platform::write_some(platform::duplicate(1),
                       api::encode_frame(api::AgentEvent{api::AgentRefused{reason}}));
}

// The process that holds the directory for a pipe.
Result<platform::Process> start_holder(const AgentOptions& options) {
  platform::Command command;
  command.program = platform::executable_path();
  command.arguments = {
      "agent",     "--hold",        "--state-id", options.state_id,
      "--run-dir", options.run_dir, "--grace",    fmt::format("{}", options.grace.count())};
  command.in = platform::Stdio::Null;
  command.out = platform::Stdio::Null;
  command.err = platform::Stdio::Inherit;  // until it holds: why it cannot is ours to say
  return platform::Process::spawn(command);
}

// Is a pipe to who holds the directory, which is started if nobody does.
Awaitable<int> start_pipe(Executor executor, std::filesystem::path sockets,
                          const AgentOptions& options) {
  steady_timer pause(executor);
  platform::Process holder;
  std::string reason = "the agent does not start";
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto piped = co_await become_pipe(executor, sockets, options.state_id);
    if (holder.running()) {
      if (piped) holder.release();
    } else if (!piped) {
      auto started = start_holder(options);
      if (!started) {
        reason = started.error().message;
        break;
      }
      holder = std::move(*started);
    }
    if (piped) co_return 0;
    pause.expires_after(kTryAgain);
    co_await pause.async_wait(kAwait);
    (void)holder.poll();
  }
  refuse(reason);
  co_return 1;
}

// Holds the directory, or is a pipe to who does. Between the two a holder may just be ending: its
// lock is there and its socket is not; then it is tried again for a while.
Awaitable<int> start(Executor executor, boost::asio::thread_pool& disk,
                     boost::asio::thread_pool& starts, const AgentOptions& options) {
  const auto sockets = platform::make_socket_dir(options.run_dir);
  if (!sockets) {
    refuse(sockets.error().message);
    co_return 1;
  }
  if (options.role == AgentOptions::Role::Pipe)
    co_return co_await start_pipe(executor, *sockets, options);
  steady_timer pause(executor);
  std::string reason;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    auto hold = Hold::acquire(executor, options.run_dir, *sockets, options.state_id);
    if (hold) {
      Supervisor::Options runners{
          .executor = executor,
          .disk = &starts,
          .program = options.flotilla.empty()
                         ? runner_program(platform::executable_path(), platform::x86_level())
                         : options.flotilla,
          .log_dir = options.run_dir / "logs",
          .socket_dir = *sockets,
          .cells_dir = options.run_dir / "cells"};
      std::error_code ignored;  // of an agent that was killed; its runners ended with it
      std::filesystem::remove_all(runners.cells_dir, ignored);
      Agent agent(executor, disk, options, std::move(*hold), std::move(runners));
      co_await agent.run();
      co_return 0;
    }
    reason = hold.error().message;
    if (hold.error().code != Code::Conflict) break;
    if (options.role == AgentOptions::Role::Holder) break;  // another came first
    const auto piped = co_await become_pipe(executor, *sockets, options.state_id);
    if (piped) co_return 0;
    pause.expires_after(kTryAgain);
    co_await pause.async_wait(kAwait);
  }
  refuse(reason);
  co_return 1;
}

}  // namespace

int run_agent(const AgentOptions& options) {
  platform::ignore_broken_pipes();
  platform::ignore_hangup();
  for (const auto& dir : {options.run_dir, options.run_dir / "logs"}) {
    if (const auto made = platform::make_private_dir(dir); !made) {
      refuse(made.error().message);
      return 1;
    }
  }
  int exit_code = 1;
  boost::asio::io_context context(1);
  // What is asked may take a disk's whole time; what starts a runner waits for none of it.
  boost::asio::thread_pool disk(1);
  boost::asio::thread_pool starts(1);
  boost::asio::co_spawn(context, start(context.get_executor(), disk, starts, options),
                        [&](std::exception_ptr, int code) {
                          exit_code = code;
                          context.stop();
                        });
  context.run();
  return exit_code;
}

}  // namespace flotilla::agent
