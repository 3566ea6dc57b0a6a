#include "agent/agent.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include "api/agent_frames.h"
#include "platform/held_program.h"
#include "platform/memory_info.h"
#include "platform/process.h"

// The real agent as a process of its own: this program, started again with FLOTILLA_TEST_AGENT set,
// is one; with a first argument "runner" it is a runner, whose alias says how it behaves, with
// "engine" an engine and with "agent" its holder.
namespace flotilla::agent {
namespace {

namespace fs = std::filesystem;
using boost::asio::ip::tcp;

std::string argument(int argc, char** argv, const std::string& flag) {
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.starts_with(flag + "=")) return text.substr(flag.size() + 1);
  }
  return {};
}

[[noreturn]] void be_a_runner(const std::string& alias) {
  std::fprintf(stderr, "runner %s starts\n", alias.c_str());
  if (alias == "fails") {
    std::printf("{\"phase\":\"failed\",\"error\":\"the model is broken\"}\n");
    std::fflush(stdout);
    std::_Exit(1);
  }
  if (alias == "stubborn") ::signal(SIGTERM, SIG_IGN);
  std::printf("{\"phase\":\"loading\",\"loaded_bytes\":5,\"total_bytes\":10}\nnot a frame\n");
  std::printf("{\"phase\":\"ready\",\"info\":{\"protocol\":1,\"width\":8}}\n");
  std::fflush(stdout);
  if (alias == "crashes") ::raise(SIGSEGV);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  std::_Exit(0);
}

tcp::endpoint loopback(int port) {
  return {boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
}

bool somebody_listens(int port) {
  boost::asio::io_context io;
  tcp::socket socket(io);
  boost::system::error_code error;
  socket.connect(loopback(port), error);
  return !error;
}

// How an engine ends that cannot listen, by what it says; "late": once somebody else does.
[[noreturn]] void be_an_engine(int port, const std::string& says) {
  for (int i = 0; says == "late" && i < 1000 && !somebody_listens(port); ++i)
    ::poll(nullptr, 0, 10);
  std::fprintf(stderr, "%s\n", says.c_str());
  std::_Exit(1);
}

int be_an_agent(const char* run_dir) {
  AgentOptions options;
  options.run_dir = run_dir;
  options.state_id = std::getenv("FLOTILLA_TEST_STATE");
  options.grace = std::chrono::seconds(std::atoi(std::getenv("FLOTILLA_TEST_GRACE")));
  options.version = "test";
  return run_agent(options);
}

// A gateway made of blocking calls.
class Gateway {
 public:
  Gateway(const fs::path& run_dir, int grace_s, const std::string& state_id = "state-1") {
    platform::Command command;
    command.program = platform::executable_path();
    command.err = platform::Stdio::Null;
    command.env = {{"FLOTILLA_TEST_AGENT", run_dir},
                   {"FLOTILLA_TEST_STATE", state_id},
                   {"FLOTILLA_TEST_GRACE", std::to_string(grace_s)}};
    auto spawned = platform::Process::spawn(command);
    EXPECT_TRUE(spawned) << spawned.error().message;
    agent = std::move(*spawned);
  }

  void send(const api::AgentCommand& command) {
    const std::string frame = *api::encode_frame(command);
    ASSERT_EQ(::write(agent.in.get(), frame.data(), frame.size()),
              static_cast<ssize_t>(frame.size()));
  }
  void start(const std::string& replica, const std::string& alias) {
    api::StartReplica start{.replica = replica, .generation = "g1"};
    start.spec.alias = alias;
    start.spec.node = "local-1";
    start.spec.synthetic = true;
    send(start);
  }

  void start_engine(const std::string& replica, const std::string& says) {
    api::StartReplica start{.replica = replica, .generation = "g1"};
    start.spec.alias = start.spec.model = "m";
    start.spec.node = "local-1";
    start.spec.engine =
        api::EngineSpec{.name = "other",
                        .command = {platform::executable_path().string(), "engine", "{port}", says},
                        .model_by_name = true};
    send(start);
  }

  std::optional<api::AgentEvent> next() {
    for (;;) {
      auto frame = frames_.next();
      EXPECT_TRUE(frame);
      if (frame && *frame) {
        auto event = api::parse_event(**frame);
        EXPECT_TRUE(event);
        return *event;
      }
      pollfd ready{agent.out.get(), POLLIN, 0};
      if (::poll(&ready, 1, 10000) <= 0) return std::nullopt;
      char chunk[4096];
      const ssize_t count = ::read(agent.out.get(), chunk, sizeof chunk);
      if (count <= 0) return std::nullopt;
      frames_.feed(std::string_view(chunk, static_cast<std::size_t>(count)));
    }
  }
  // Skips others; a default T when the agent ended or 10 s were silent.
  template <class T>
  T expect() {
    while (auto event = next())
      if (auto* found = std::get_if<T>(&*event)) return *found;
    ADD_FAILURE() << "the event did not come";
    return {};
  }

  platform::Process agent;

 private:
  api::FrameReader frames_;
};

// A zombie that its parent has not reaped yet has no memory any more.
bool lives(int pid) { return platform::resident_bytes(pid).has_value(); }

// The agent is not our child in every test, so its runners are not ours to wait for.
bool ends(int pid) {
  for (int i = 0; i < 500 && lives(pid); ++i) ::poll(nullptr, 0, 10);
  return !lives(pid);
}

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    char name[] = "/tmp/flotilla-test-XXXXXX";
    root_ = ::mkdtemp(name);
    run_dir_ = root_ / "agent";
  }
  ~AgentTest() override { fs::remove_all(root_); }
  fs::path root_;
  fs::path run_dir_;
};

TEST_F(AgentTest, SaysWhoItIsAndReportsARunnersLife) {
  Gateway gateway(run_dir_, 0);
  const auto hello = gateway.expect<api::AgentHello>();
  EXPECT_EQ(hello.protocol, api::kAgentProtocol);
  EXPECT_EQ(hello.version, "test");
  EXPECT_EQ(hello.run_dir, run_dir_.string());
  EXPECT_TRUE(hello.holds.empty());

  gateway.start("r1", "good");
  const auto spawned = gateway.expect<api::ReplicaSpawned>();
  EXPECT_EQ(spawned.replica, "r1");
  EXPECT_TRUE(lives(spawned.pid));
  EXPECT_LE(spawned.socket.size(), 100U);
  EXPECT_EQ(gateway.expect<api::ReplicaLoading>().total_bytes, 10);
  EXPECT_EQ(gateway.expect<api::ReplicaReady>().info.width, 8);
  gateway.send(api::StopReplica{"r1", 5000});
  const auto exited = gateway.expect<api::ReplicaExited>();
  EXPECT_EQ(exited.replica, "r1");
  EXPECT_EQ(exited.reason, "stopped");
  EXPECT_TRUE(exited.was_ready);
  EXPECT_NE(exited.log_tail.find("runner good starts\n"), std::string::npos);
  EXPECT_NE(exited.log_tail.find("not a frame\n"), std::string::npos);
  EXPECT_FALSE(lives(spawned.pid));
  EXPECT_TRUE(fs::exists(run_dir_ / "logs" / "local-1-good.log"));
}

TEST_F(AgentTest, AnswersBeatsAndQuestions) {
  Gateway gateway(run_dir_, 0);
  EXPECT_GT(gateway.expect<api::AgentTelemetry>().memory_total, 0);
  gateway.send(api::Heartbeat{12345, 0});
  while (gateway.expect<api::Heartbeat>().echo_unix_ms != 12345) {
  }
  fs::create_directory(root_ / "models");
  gateway.send(api::ListModels{9, root_ / "models"});
  EXPECT_EQ(gateway.expect<api::ModelList>().request, 9);
  gateway.send(api::Preflight{10, {.model = "none.gguf", .models_dir = root_ / "models"}});
  EXPECT_EQ(gateway.expect<api::PreflightAnswer>().request, 10);
}

TEST_F(AgentTest, TellsWhyARunnerEnded) {
  Gateway gateway(run_dir_, 0);
  gateway.start("r1", "fails");
  auto exited = gateway.expect<api::ReplicaExited>();
  EXPECT_EQ(exited.reason, "the model is broken");
  EXPECT_TRUE(exited.own_fault);
  EXPECT_FALSE(exited.was_ready);
  gateway.start("r2", "crashes");
  exited = gateway.expect<api::ReplicaExited>();
  EXPECT_EQ(exited.signal.value_or(exited.exit_code.value_or(-1)) != 0, true);
  EXPECT_TRUE(exited.own_fault);
  gateway.start("r3", "good");
  const auto spawned = gateway.expect<api::ReplicaSpawned>();
  gateway.expect<api::ReplicaReady>();
  ::kill(spawned.pid, SIGKILL);
  exited = gateway.expect<api::ReplicaExited>();
  EXPECT_EQ(exited.signal, SIGKILL);
  EXPECT_FALSE(exited.own_fault);
  api::StartReplica missing{.replica = "r4"};
  missing.spec.model = "/no/such.gguf";
  gateway.send(missing);
  exited = gateway.expect<api::ReplicaExited>();
  EXPECT_EQ(exited.replica, "r4");
  EXPECT_NE(exited.reason.find("/no/such.gguf"), std::string::npos);
  gateway.send(api::StopReplica{"r5", 0});
  EXPECT_EQ(gateway.expect<api::ReplicaExited>().replica, "r5");
}

TEST_F(AgentTest, AnEngineWhosePortAnotherProgramHasIsNotToBlame) {
  boost::asio::io_context io;
  Gateway gateway(run_dir_, 0);
  gateway.start_engine("e1", "late");
  const std::string at = gateway.expect<api::ReplicaSpawned>().socket;
  ASSERT_TRUE(at.starts_with("127.0.0.1:")) << at;
  const int port = std::stoi(at.substr(at.find(':') + 1));
  const tcp::acceptor somebody(io, loopback(port));
  auto exited = gateway.expect<api::ReplicaExited>();
  EXPECT_TRUE(exited.port_taken);
  EXPECT_FALSE(exited.own_fault);
  EXPECT_EQ(exited.reason,
            "another program took " + at + " before it could listen there: exit code 1: late");

  gateway.start_engine("e2", "bind: address already in use");
  exited = gateway.expect<api::ReplicaExited>();
  EXPECT_TRUE(exited.port_taken) << exited.reason;
  gateway.start_engine("e3", "out of luck");
  exited = gateway.expect<api::ReplicaExited>();
  EXPECT_FALSE(exited.port_taken);
  EXPECT_TRUE(exited.own_fault);
  EXPECT_EQ(exited.reason, "exit code 1: out of luck");
}

TEST_F(AgentTest, ARunnerThatIgnoresSigtermIsKilledWhenItsGraceIsOver) {
  Gateway gateway(run_dir_, 0);
  gateway.start("r1", "stubborn");
  gateway.expect<api::ReplicaReady>();
  gateway.send(api::StopReplica{"r1", 60000});
  gateway.send(api::StopReplica{"r1", 30});
  const auto exited = gateway.expect<api::ReplicaExited>();
  EXPECT_EQ(exited.signal, SIGKILL);
  EXPECT_FALSE(exited.own_fault);
  EXPECT_NE(exited.reason, "stopped");
}

TEST_F(AgentTest, StartingWhatRunsRepeatsItsEvents) {
  Gateway gateway(run_dir_, 0);
  gateway.start("r1", "good");
  const int pid = gateway.expect<api::ReplicaSpawned>().pid;
  gateway.expect<api::ReplicaReady>();
  gateway.start("r1", "good");
  EXPECT_EQ(gateway.expect<api::ReplicaSpawned>().pid, pid);
  EXPECT_EQ(gateway.expect<api::ReplicaReady>().replica, "r1");
}

TEST_F(AgentTest, RunnersEndWhenTheAgentIsKilled) {
  Gateway gateway(run_dir_, 60);
  gateway.start("r1", "stubborn");
  const int pid = gateway.expect<api::ReplicaSpawned>().pid;
  gateway.expect<api::ReplicaReady>();
  gateway.agent.signal(SIGKILL);
  gateway.agent.wait();
  EXPECT_TRUE(ends(pid));
}

TEST_F(AgentTest, WithoutGraceRunnersAndAgentEndWithTheGateway) {
  Gateway gateway(run_dir_, 0);
  gateway.start("r1", "good");
  const int pid = gateway.expect<api::ReplicaSpawned>().pid;
  gateway.agent.in.reset();
  EXPECT_EQ(gateway.agent.wait().exit_code, 0);
  EXPECT_TRUE(ends(pid));
}

TEST_F(AgentTest, EndAgentEndsAllAlsoWithGrace) {
  Gateway gateway(run_dir_, 60);
  gateway.start("r1", "stubborn");
  const int pid = gateway.expect<api::ReplicaSpawned>().pid;
  gateway.expect<api::ReplicaReady>();
  gateway.send(api::EndAgent{20});
  EXPECT_EQ(gateway.agent.wait().exit_code, 0);
  EXPECT_FALSE(lives(pid));
}

TEST_F(AgentTest, TheNextGatewayOfTheSameStateAdoptsTheRunners) {
  int agent = 0;
  int runner = 0;
  {
    Gateway first(run_dir_, 60);
    first.start("r1", "good");
    runner = first.expect<api::ReplicaSpawned>().pid;
    first.expect<api::ReplicaReady>();
    agent = first.agent.pid();
    first.agent.release();
  }  // the pipes close
  Gateway second(run_dir_, 60);
  const auto hello = second.expect<api::AgentHello>();
  ASSERT_EQ(hello.holds.size(), 1U);
  EXPECT_EQ(hello.holds[0].replica, "r1");
  EXPECT_EQ(hello.holds[0].generation, "g1");
  EXPECT_EQ(hello.holds[0].pid, runner);
  ASSERT_TRUE(hello.holds[0].info);
  EXPECT_EQ(hello.holds[0].info->width, 8);
  // What happens goes to the second one, through its pipe.
  ::kill(runner, SIGKILL);
  EXPECT_EQ(second.expect<api::ReplicaExited>().replica, "r1");
  second.send(api::EndAgent{100});
  EXPECT_EQ(second.agent.wait().exit_code, 0);
  ::kill(agent, SIGKILL);
  EXPECT_EQ(::waitpid(agent, nullptr, 0), agent);
}

TEST_F(AgentTest, AnotherGatewayIsRefusedAndToldByWhom) {
  Gateway first(run_dir_, 60);
  first.expect<api::AgentHello>();
  Gateway other(run_dir_, 60, "state-2");
  const auto refused = other.expect<api::AgentRefused>();
  EXPECT_NE(refused.reason.find("state-1"), std::string::npos);
  EXPECT_NE(refused.reason.find(std::to_string(first.agent.pid())), std::string::npos);
  other.agent.wait();
  EXPECT_TRUE(first.agent.running());
  EXPECT_FALSE(first.agent.poll());
}

TEST_F(AgentTest, ANewLinkOfTheSameGatewayTakesTheOldOnesPlace) {
  Gateway first(run_dir_, 60);
  first.expect<api::AgentHello>();
  Gateway second(run_dir_, 60);
  second.expect<api::AgentHello>();
  while (first.next()) {
  }  // its stdout has closed
  second.start("r1", "good");
  second.expect<api::ReplicaReady>();
  second.send(api::EndAgent{100});
  EXPECT_EQ(first.agent.wait().exit_code, 0);
}

TEST_F(AgentTest, WhenTheGraceIsOverTheRunnersEnd) {
  Gateway gateway(run_dir_, 1);
  gateway.start("r1", "good");
  const int pid = gateway.expect<api::ReplicaSpawned>().pid;
  gateway.expect<api::ReplicaReady>();
  gateway.agent.in.reset();
  gateway.agent.out.reset();
  EXPECT_TRUE(lives(pid));
  EXPECT_EQ(gateway.agent.wait().exit_code, 0);
  EXPECT_FALSE(lives(pid));
}

TEST_F(AgentTest, RunnersThatEndedWhileNobodyWasThereAreReportedToTheNext) {
  int runner = 0;
  int agent = 0;
  {
    Gateway first(run_dir_, 60);
    first.start("r1", "good");
    runner = first.expect<api::ReplicaSpawned>().pid;
    first.expect<api::ReplicaReady>();
    agent = first.agent.pid();
    first.agent.in.reset();
    while (first.next()) {
    }
    first.agent.release();
  }
  ::kill(runner, SIGKILL);
  ASSERT_TRUE(ends(runner));
  Gateway second(run_dir_, 60);
  EXPECT_TRUE(second.expect<api::AgentHello>().holds.empty());
  EXPECT_EQ(second.expect<api::ReplicaExited>().signal, SIGKILL);
  second.send(api::EndAgent{100});
  second.agent.wait();
  EXPECT_EQ(::waitpid(agent, nullptr, 0), agent);
}

}  // namespace

int test_main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "runner") be_a_runner(argument(argc, argv, "--alias"));
  if (role == "engine") be_an_engine(std::atoi(argv[2]), argv[3]);
  if (role == "agent") {  // --hold-engine -- WORDS
    const std::vector<std::string> words(argv + 4, argv + argc);
    return platform::hold_program(words, std::chrono::milliseconds(100));
  }
  if (const char* run_dir = std::getenv("FLOTILLA_TEST_AGENT")) return be_an_agent(run_dir);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace flotilla::agent

int main(int argc, char** argv) { return flotilla::agent::test_main(argc, argv); }
