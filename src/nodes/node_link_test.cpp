#include "nodes/node_link.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "nodes/transport_local.h"
#include "platform/process.h"

// The agent is this program, started again with FLOTILLA_TEST_AGENT set to how it behaves.
namespace flotilla::nodes {
namespace {

using std::chrono::milliseconds;

// --- the agent's side: blocking ---

void say(const api::AgentEvent& event) {
  const std::string frame = api::encode_frame(event);
  if (::write(1, frame.data(), frame.size()) < 0) std::_Exit(3);
}

std::optional<api::AgentCommand> hear(api::FrameReader& frames) {
  for (;;) {
    const auto frame = frames.next();
    if (frame && *frame) return *api::parse_command(**frame);
    char chunk[4096];
    const ssize_t count = ::read(0, chunk, sizeof chunk);
    if (count <= 0) return std::nullopt;
    frames.feed(std::string_view(chunk, static_cast<std::size_t>(count)));
  }
}

void answer(const api::AgentCommand& command, const std::string& behaviour) {
  if (const auto* beat = std::get_if<api::Heartbeat>(&command)) {
    if (behaviour != "falls silent") say(api::Heartbeat{1, beat->sent_unix_ms});
  } else if (const auto* start = std::get_if<api::StartReplica>(&command)) {
    say(api::ReplicaSpawned{start->replica, 42, "/remote/" + start->replica});
    if (start->replica != "r1") say(api::ReplicaReady{start->replica, {}});
  } else if (const auto* stop = std::get_if<api::StopReplica>(&command)) {
    if (stop->replica == "the agent") std::_Exit(7);
    say(api::ReplicaExited{.replica = stop->replica, .reason = "stopped"});
  } else if (const auto* list = std::get_if<api::ListModels>(&command)) {
    if (list->models_dir == "die") std::_Exit(7);
    if (list->models_dir != "never")
      say(api::ModelList{.request = list->request, .models = {{.path = "a.gguf"}}});
  } else if (const auto* preflight = std::get_if<api::Preflight>(&command)) {
    say(api::PreflightAnswer{.request = preflight->request, .verdict = preflight->spec.model});
  }
}

int be_an_agent(const std::string& behaviour) {
  if (behaviour == "fails") {
    std::fprintf(stderr, "starting\nno such thing\n");
    return 1;
  }
  if (behaviour == "talks rubbish") return std::puts("Welcome to this machine!") < 0;
  if (behaviour == "refuses") return say(api::AgentRefused{"held by pid 7"}), 1;
  if (behaviour == "is mute") {
    for (char byte; ::read(0, &byte, 1) > 0;) continue;
    return 0;
  }
  api::AgentHello hello{.version = "0.0", .platform = "test"};
  if (behaviour == "is newer") hello.protocol = 2;
  if (behaviour == "holds")
    hello.holds.push_back({"old", "g", "/remote/old", 41, api::RunnerInfo{}});
  say(hello);
  api::FrameReader frames;
  while (const auto command = hear(frames)) {
    if (std::holds_alternative<api::EndAgent>(*command)) {
      if (behaviour != "never ends") return 0;
    } else {
      answer(*command, behaviour);
    }
  }
  if (behaviour == "never ends")
    for (;;) ::pause();
  return 0;
}

// --- the gateway's side ---

class TestTransport final : public Transport {
 public:
  explicit TestTransport(std::string behaviour) : behaviour_(std::move(behaviour)) {}
  platform::Command agent_command() const override {
    platform::Command command;
    command.program =
        behaviour_ == "is missing" ? "/no/such/flotilla" : platform::executable_path();
    command.env = {{"FLOTILLA_TEST_AGENT", behaviour_}};
    return command;
  }
  Result<std::string> open_socket(const std::string&, const std::string& socket) override {
    if (unnameable) return fail(Code::InvalidArgument, "ssh cannot forward it");
    return "/local" + socket;
  }
  bool is_open(const std::string&) const override { return !slow; }
  Task<void> wait_open(std::string replica, milliseconds) override {
    const auto executor = co_await boost::asio::this_coro::executor;
    boost::asio::steady_timer timer(executor, milliseconds(20));
    co_await timer.async_wait(kAwait);
    if (std::ranges::find(closed, replica) != closed.end())
      co_return fail(Code::NotFound, "closed");
    if (never) co_return fail(Code::DeadlineExceeded, "it cannot be reached");
    slow = false;
    co_return Result<void>{};
  }
  void close_socket(const std::string& replica) override { closed.push_back(replica); }
  std::vector<std::string> closed;
  bool slow = false;   // sockets open after a while
  bool never = false;  // or not at all
  bool unnameable = false;

 private:
  const std::string behaviour_;
};

class NodeLinkTest : public testing::Test {
 protected:
  void connect(const std::string& behaviour) {
    states_.clear();
    auto transport = std::make_unique<TestTransport>(behaviour);
    transport_ = transport.get();
    NodeLink::Options options;
    options.executor = context_.get_executor();
    options.clock = &clock_;
    options.name = "n";
    options.transport = std::move(transport);
    options.heartbeat = milliseconds(5);
    options.dead_after =
        milliseconds(behaviour == "falls silent" || behaviour == "is mute" ? 60 : 5000);
    options.end_after = milliseconds(behaviour == "never ends" ? 30 : 2000);
    options.retry_min = milliseconds(10);
    options.retry_max = milliseconds(20);
    options.on_state = [this](const LinkStatus& status) { states_.push_back(status); };
    options.on_event = [this](const api::AgentEvent& event) { events_.push_back(event); };
    link_ = std::make_unique<NodeLink>(std::move(options));
    link_->start();
    EXPECT_TRUE(states_.empty()) << "a callback from inside a call";
  }

  template <class Condition>
  bool run_until(Condition condition) {
    const Instant deadline = clock_.now() + std::chrono::seconds(10);
    while (!condition() && clock_.now() < deadline) {
      if (context_.stopped()) context_.restart();  // it had run out of work
      context_.run_one_for(milliseconds(50));
    }
    return condition();
  }
  bool up() {
    return run_until([this] { return link_->status().state == LinkState::Up; });
  }
  // Why it is down, once it is.
  std::string down() {
    run_until([this] { return link_->status().state == LinkState::Down; });
    return link_->status().reason;
  }
  template <class T>
  std::optional<T> event() {
    std::optional<T> found;
    run_until([&] {
      for (const auto& event : events_)
        if (const auto* match = std::get_if<T>(&event)) found = *match;
      return found.has_value();
    });
    return found;
  }
  template <class T>
  Result<T> wait(Task<T> task) {
    std::optional<Result<T>> result;
    boost::asio::co_spawn(context_, std::move(task),
                          [&](std::exception_ptr, Result<T> value) { result = std::move(value); });
    run_until([&] { return result.has_value(); });
    return result ? std::move(*result) : fail(Code::Internal, "no answer");
  }
  bool close(NodeLink::Runners runners, milliseconds grace) {
    bool closed = false;
    boost::asio::co_spawn(context_, link_->close(runners, grace),
                          [&](std::exception_ptr) { closed = true; });
    return run_until([&] { return closed; });
  }

  SystemClock clock_;
  boost::asio::io_context context_;
  TestTransport* transport_ = nullptr;
  std::vector<LinkStatus> states_;
  std::vector<api::AgentEvent> events_;
  std::unique_ptr<NodeLink> link_;
};

TEST_F(NodeLinkTest, ComesUpAndCarriesCommandsAndEvents) {
  connect("is good");
  EXPECT_EQ(link_->hello(), nullptr);
  EXPECT_EQ(link_->start_replica({}).error().code, Code::Unavailable);
  ASSERT_TRUE(up());
  ASSERT_NE(link_->hello(), nullptr);
  EXPECT_EQ(link_->hello()->platform, "test");
  ASSERT_TRUE(link_->start_replica({.replica = "r1"}));
  const auto spawned = event<api::ReplicaSpawned>();
  ASSERT_TRUE(spawned);
  EXPECT_EQ(spawned->socket, "/local/remote/r1");
  ASSERT_TRUE(link_->stop_replica({.replica = "r1"}));
  ASSERT_TRUE(event<api::ReplicaExited>());
  EXPECT_EQ(transport_->closed, std::vector<std::string>{"r1"});
  EXPECT_EQ(states_.front().state, LinkState::Connecting);
  EXPECT_TRUE(std::holds_alternative<api::AgentHello>(events_.front()));
  api::StartReplica huge{.replica = "r2"};
  huge.spec.chat_template = std::string(api::kAgentFrameMax, 'x');
  EXPECT_EQ(link_->start_replica(huge).error().code, Code::TooLarge);
}

TEST_F(NodeLinkTest, HeldReplicasComeWithTheHello) {
  connect("holds");
  const auto hello = event<api::AgentHello>();
  ASSERT_TRUE(hello);
  ASSERT_EQ(hello->holds.size(), 1U);
  EXPECT_EQ(hello->holds[0].socket, "/local/remote/old");
}

TEST_F(NodeLinkTest, ItIsUpOnceTheSocketsOfWhatIsHeldAccept) {
  connect("holds");
  transport_->slow = true;
  run_until([this] { return link_->status().state != LinkState::Connecting; });
  EXPECT_EQ(link_->status().state, LinkState::Up);
  EXPECT_FALSE(transport_->slow);  // waited for
  EXPECT_TRUE(event<api::AgentHello>()->holds.at(0).info.has_value());
}

TEST_F(NodeLinkTest, WhatIsHeldBehindASocketThatDoesNotOpenIsNobodys) {
  connect("holds");
  transport_->slow = transport_->never = true;
  const auto hello = event<api::AgentHello>();
  ASSERT_TRUE(hello);
  EXPECT_FALSE(hello->holds.at(0).info.has_value());
  EXPECT_EQ(hello->holds.at(0).generation, "");
}

TEST_F(NodeLinkTest, AReplicaIsReadyWhenItsSocketAccepts) {
  connect("is good");
  ASSERT_TRUE(up());
  transport_->slow = true;
  ASSERT_TRUE(link_->start_replica({.replica = "r2"}));
  ASSERT_TRUE(event<api::ReplicaReady>());
  EXPECT_FALSE(transport_->slow);
}

TEST_F(NodeLinkTest, AReplicaWhoseSocketDoesNotOpenHasEnded) {
  connect("is good");
  ASSERT_TRUE(up());
  transport_->slow = transport_->never = true;
  ASSERT_TRUE(link_->start_replica({.replica = "r2"}));
  const auto exited = event<api::ReplicaExited>();
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->reason, "it cannot be reached");
  EXPECT_TRUE(std::ranges::none_of(events_, [](const api::AgentEvent& event) {
    return std::holds_alternative<api::ReplicaReady>(event);
  }));
}

// An engine is not waited for to be ready: whoever talks to it finds out.
TEST_F(NodeLinkTest, AReplicaWhoseSocketNobodyWillEverReachHasEnded) {
  connect("is good");
  ASSERT_TRUE(up());
  ASSERT_TRUE(link_->start_replica({.replica = "r1"}));
  ASSERT_TRUE(event<api::ReplicaSpawned>());
  transport_->on_barred("r1", "sshd forbids it");
  const auto exited = event<api::ReplicaExited>();
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->reason, "sshd forbids it");
  EXPECT_EQ(transport_->closed.at(0), "r1");
}

TEST_F(NodeLinkTest, AReplicaWhoseSocketCannotBeNamedHasEnded) {
  connect("is good");
  ASSERT_TRUE(up());
  transport_->unnameable = true;
  ASSERT_TRUE(link_->start_replica({.replica = "r2"}));
  const auto exited = event<api::ReplicaExited>();
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->reason, "ssh cannot forward it");
}

TEST_F(NodeLinkTest, AnAgentThatIsToStartAnewDoesSoAtOnce) {
  connect("is good");
  ASSERT_TRUE(up());
  link_->restart_agent();
  ASSERT_TRUE(run_until([this] { return link_->status().state == LinkState::Down; }));
  EXPECT_TRUE(up());
}

TEST_F(NodeLinkTest, AnAgentOfAnotherProtocolThatIsToStartAnewEnds) {
  connect("is newer");
  ASSERT_NE(down().find("speaks protocol 2"), std::string::npos);
  link_->restart_agent();
  const auto ended = [](const LinkStatus& status) {
    return status.other_version && status.reason.find("the agent ended") != std::string::npos;
  };
  EXPECT_TRUE(run_until([&] { return std::ranges::any_of(states_, ended); }));
  // What is started in its place is asked anew.
  EXPECT_TRUE(run_until(
      [this] { return link_->status().reason.find("speaks protocol 2") != std::string::npos; }));
}

TEST_F(NodeLinkTest, QuestionsAreAnsweredOrTheirFailureIsSaid) {
  connect("is good");
  EXPECT_EQ(wait(link_->list_models("/m", milliseconds(1000))).error().code, Code::Unavailable);
  ASSERT_TRUE(up());
  EXPECT_EQ(wait(link_->list_models("/m", milliseconds(5000)))->models.at(0).path, "a.gguf");
  EXPECT_EQ(wait(link_->preflight({.spec = {.model = "x"}}, milliseconds(5000)))->verdict, "x");
  EXPECT_EQ(wait(link_->list_models("never", milliseconds(20))).error().code,
            Code::DeadlineExceeded);
  EXPECT_EQ(wait(link_->list_models("die", milliseconds(5000))).error().code, Code::Unavailable);
}

TEST_F(NodeLinkTest, AnAgentThatDiesIsSeenAndStartedAgain) {
  connect("is good");
  ASSERT_TRUE(up());
  ASSERT_TRUE(link_->stop_replica({.replica = "the agent"}));
  EXPECT_NE(down().find("the agent ended"), std::string::npos) << down();
  EXPECT_EQ(link_->hello(), nullptr);
  EXPECT_TRUE(up());
  EXPECT_TRUE(link_->start_replica({.replica = "again"}));
  EXPECT_EQ(event<api::ReplicaSpawned>()->replica, "again");
}

TEST_F(NodeLinkTest, WhyALinkCannotComeUpIsSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"fails", "no such thing"},           {"is missing", "/no/such/flotilla"},
      {"talks rubbish", "sends no frames"}, {"talks rubbish", "the start files of its shell"},
      {"refuses", "held by pid 7"},         {"is mute", "does not answer as an agent"},
      {"falls silent", "nothing heard"},    {"is newer", "speaks protocol 2"},
  };
  for (const auto& [behaviour, why] : cases) {
    connect(behaviour);
    EXPECT_NE(down().find(why), std::string::npos) << behaviour << ": " << down();
    states_.clear();
    // It goes on trying.
    EXPECT_TRUE(run_until([this] { return states_.size() >= 2; })) << behaviour;
    EXPECT_TRUE(close(NodeLink::Runners::End, milliseconds(0)));
    link_.reset();
  }
}

TEST_F(NodeLinkTest, ClosingEndsTheAgentAlsoOneThatWillNot) {
  connect("is good");
  ASSERT_TRUE(up());
  EXPECT_TRUE(close(NodeLink::Runners::End, milliseconds(1000)));
  EXPECT_EQ(link_->start_replica({}).error().code, Code::Unavailable);
  connect("never ends");
  ASSERT_TRUE(up());
  EXPECT_TRUE(close(NodeLink::Runners::End, milliseconds(0)));
}

TEST_F(NodeLinkTest, ClosingBeforeTheStartOrWhileDownReturns) {
  connect("fails");
  EXPECT_TRUE(close(NodeLink::Runners::Keep, milliseconds(0)));
  connect("fails");
  down();
  EXPECT_TRUE(close(NodeLink::Runners::End, milliseconds(0)));
}

TEST_F(NodeLinkTest, TheRoundTripIsMeasured) {
  connect("is good");
  ASSERT_TRUE(up());
  ASSERT_TRUE(link_->start_replica({.replica = "r1"}));
  ASSERT_TRUE(event<api::ReplicaSpawned>());
  EXPECT_GE(link_->status().round_trip_ms, 0);
}

TEST_F(NodeLinkTest, DestroyedWhileUpItSaysNothingMore) {
  connect("is good");
  ASSERT_TRUE(up());
  ASSERT_TRUE(link_->start_replica({.replica = "r1"}));
  link_.reset();
  states_.clear();
  events_.clear();
  context_.run_for(milliseconds(100));
  EXPECT_TRUE(states_.empty());
  EXPECT_TRUE(events_.empty());
}

TEST(LocalTransport, StartsTheAgentOfTheRunningProgram) {
  const auto transport =
      make_local_transport({.state_id = "s", .run_dir = "/r", .grace_s = 60, .env = {{"A", "1"}}});
  const platform::Command command = transport->agent_command();
  EXPECT_EQ(command.program, platform::executable_path());
  EXPECT_EQ(command.arguments, (std::vector<std::string>{"agent", "--state-id", "s", "--run-dir",
                                                         "/r", "--grace", "60"}));
  EXPECT_EQ(command.env.at("A"), "1");
  EXPECT_EQ(*transport->open_socket("r", "/s/1"), "/s/1");
}

}  // namespace

int test_main(int argc, char** argv) {
  if (const char* behaviour = std::getenv("FLOTILLA_TEST_AGENT")) return be_an_agent(behaviour);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace flotilla::nodes

int main(int argc, char** argv) { return flotilla::nodes::test_main(argc, argv); }
