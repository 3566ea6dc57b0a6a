#include "gateway/diagnosis.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "nodes/ssh_command.h"

// Each of the likely troubles, as the facts that it leaves, and the cause and remedy that are
// named.
namespace flotilla::gateway {
namespace {

using Level = api::Finding::Level;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

api::NodeStatus node_up(const std::string& id = "a") {
  api::NodeStatus node;
  node.id = id;
  node.state = "up";
  node.host = id + ".lan";
  node.version = "1";
  node.round_trip_ms = 1;
  return node;
}

// A node whose ssh has said these last words.
api::NodeStatus node_down(const std::vector<std::string>& last_words) {
  api::NodeStatus node = node_up();
  node.state = "down";
  node.version.clear();
  const nodes::SshTarget target{.host = "a.lan", .user = "ann"};
  node.reason = last_words.back() + "; " + nodes::explain_ssh(target, "a", last_words);
  return node;
}

api::ReplicaStatus replica_ready(const std::string& node = "a") {
  api::ReplicaStatus replica;
  replica.node = node;
  replica.live = true;
  replica.state = "ready";
  return replica;
}

api::NodePreflight model_there() {
  api::NodePreflight node;
  node.node = "a";
  node.answer.model_present = true;
  node.answer.fits = true;
  node.answer.need_bytes = kGiB;
  node.answer.free_bytes = 8 * kGiB;
  node.answer.hash = "0123456789abcdef";
  node.answer.disk_free_bytes = 100 * kGiB;
  return node;
}

// A cluster without trouble: a test makes one.
class Diagnosis : public testing::Test {
 protected:
  Diagnosis() {
    facts_.cluster = "lab";
    facts_.nodes = {node_up()};
    facts_.machines["a"] = {.memory_total = 16 * kGiB, .memory_available = 8 * kGiB};
    ClusterFacts::Pool pool;
    pool.status.alias = "m";
    pool.status.model = "m.gguf";
    pool.status.batch = true;
    pool.status.replicas = {replica_ready()};
    pool.batch_asked = true;
    pool.queue_max = 100;
    pool.preflight = {model_there()};
    facts_.pools = {pool};
  }

  api::PoolStatus& pool() { return facts_.pools[0].status; }
  api::ReplicaStatus& replica() { return pool().replicas[0]; }
  api::NodePreflight& model() { return facts_.pools[0].preflight[0]; }

  // All that is not good, a line each: "LEVEL NODE CHECK: DETAIL -> FIX".
  std::string troubles() const {
    std::string out;
    for (const api::Finding& finding : diagnose(facts_)) {
      EXPECT_EQ(finding.cluster, "lab");
      EXPECT_EQ(finding.fix.empty(), finding.level == Level::Ok) << finding.detail;
      if (finding.level == Level::Ok) continue;
      out += std::string(api::to_string(finding.level)) + " " + finding.node + " " + finding.check +
             ": " + finding.detail + " -> " + finding.fix + "\n";
    }
    return out;
  }
  void expect_only(const std::string& begin, const std::string& fix) const {
    const std::string found = troubles();
    EXPECT_TRUE(found.starts_with(begin)) << found;
    EXPECT_NE(found.find(fix), std::string::npos) << found;
    EXPECT_EQ(std::ranges::count(found, '\n'), 1) << found;
  }
  void expect_link_trouble(const std::vector<std::string>& last_words, const std::string& fix) {
    facts_.nodes = {node_down(last_words)};
    facts_.machines.clear();
    expect_only("failure a link: ", fix);
  }

  ClusterFacts facts_;
};

TEST_F(Diagnosis, OfACleanClusterEveryRowIsGood) {
  EXPECT_EQ(troubles(), "");
  EXPECT_GE(diagnose(facts_).size(), 6U) << "link, version, memory, pool, replica, model";
}

TEST_F(Diagnosis, AHostKeyThatIsNotKnown) {
  expect_link_trouble({"Host key verification failed."}, "flotilla node trust a");
}
TEST_F(Diagnosis, AHostKeyThatChanged) {
  expect_link_trouble(
      {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "Host key verification failed."},
      "installed anew");
}
TEST_F(Diagnosis, AMachineThatTakesNoKeyOfOurs) {
  expect_link_trouble({"ann@a.lan: Permission denied (publickey)."}, "ssh-copy-id ann@a.lan");
}
TEST_F(Diagnosis, AHostThatDoesNotExist) {
  expect_link_trouble({"ssh: Could not resolve hostname a.lan: Name or service not known"},
                      "correct the node's host");
}
TEST_F(Diagnosis, AMachineWithoutSshd) {
  expect_link_trouble({"ssh: connect to host a.lan port 22: Connection refused"}, "Remote Login");
}
TEST_F(Diagnosis, AMachineThatIsOff) {
  expect_link_trouble({"ssh: connect to host a.lan port 22: Connection timed out"},
                      "off, asleep or out of reach");
}
TEST_F(Diagnosis, AMachineWithoutFlotilla) {
  expect_link_trouble({"flotilla: not found in /usr/bin"}, "flotilla node bootstrap a");
}
TEST_F(Diagnosis, AFlotillaOfAnotherPlatform) {
  expect_link_trouble({"sh: /opt/flotilla: cannot execute binary file: Exec format error"},
                      "install one of its platform");
}
TEST_F(Diagnosis, AMachineThatIsAnothersAlready) {
  facts_.nodes[0].state = "down";
  facts_.nodes[0].reason = "held by gateway 0123 (pid 7); end that one first";
  expect_only("failure a link: held by gateway 0123 (pid 7)", "end that one first");
}
TEST_F(Diagnosis, AReasonWithoutARemedySendsToTheMachine) {
  facts_.nodes[0].state = "down";
  facts_.nodes[0].reason = "it does not answer as an agent";
  expect_only("failure a link: it does not answer", "look at the machine a.lan");
}
TEST_F(Diagnosis, AFlotillaOfAnotherVersion) {
  facts_.nodes[0].outdated = true;
  facts_.nodes[0].version = "0.0.7";
  expect_only("warning a version: flotilla 0.0.7 there", "flotilla node bootstrap a");
}
TEST_F(Diagnosis, ASlowLink) {
  facts_.nodes[0].round_trip_ms = 250;
  expect_only("warning a link: up, 250.0 ms", "cable");
}
TEST_F(Diagnosis, AModelThatIsMissing) {
  model().answer.model_present = false;
  model().answer.verdict = "there is no /models/m.gguf";
  api::compare_nodes(facts_.pools[0].preflight, "lab", "m.gguf");
  expect_only("failure a model m.gguf: there is no", "put the model on every node");
}
TEST_F(Diagnosis, AModelThatIsAnotherFileOnOneNode) {
  std::vector<api::NodePreflight>& all = facts_.pools[0].preflight;
  all.push_back(model_there());
  all.push_back(model_there());
  all[1].node = "b";
  all[2].node = "c";
  all[2].answer.hash = "fedcba9876543210";
  api::compare_nodes(all, "lab", "m.gguf");
  expect_only("failure c model m.gguf: ",
              "flotilla model sync lab m.gguf --node c: the file of node a");
}
TEST_F(Diagnosis, AMacThatKeepsLessInMemoryThanTheModelNeeds) {
  model().answer.metal_bytes = 10 * kGiB;
  EXPECT_EQ(troubles(), "");
  model().answer.need_bytes = 6 * kGiB;
  model().sharing = 2;
  expect_only("warning a metal: Metal may keep 10240 MiB",
              "sudo sysctl iogpu.wired_limit_mb=13312");
}
TEST_F(Diagnosis, ADiskThatIsAlmostFull) {
  model().answer.disk_free_bytes = 200 * kMiB;
  expect_only("warning a disk: 200 MiB are free", "make room");
}
TEST_F(Diagnosis, AMachineWhoseMemoryRunsOut) {
  facts_.machines["a"].memory_available = 300 * kMiB;
  expect_only("warning a memory: 300 of 16384 MiB are free", "end other programs");
}
TEST_F(Diagnosis, AReplicaThatTheSystemKillsForMemory) {
  replica().restarts = 5;
  replica().last_error = "killed by the system because memory ran out";
  expect_only("warning a replica of m: came back 5 times", "smaller context");
}
TEST_F(Diagnosis, AReplicaThatCrashesAgainAndAgain) {
  replica().restarts = 3;
  replica().last_error = "crashed: signal 11 (SIGSEGV)";
  expect_only("warning a replica of m: came back 3 times", "/admin/logs?node=a&replica=m");
}
TEST_F(Diagnosis, AReplicaThatDoesNotComeUp) {
  pool().replicas.push_back(replica_ready("b"));
  replica().live = false;
  replica().state = "waiting";
  replica().attempts = 4;
  replica().last_error = "unknown model architecture: 'x'";
  const std::string found = troubles();
  EXPECT_NE(found.find("warning  pool m: 1 of 2 replicas serve"), std::string::npos) << found;
  EXPECT_NE(found.find("failure a replica of m: it does not come up: unknown model architecture"),
            std::string::npos)
      << found;
}
TEST_F(Diagnosis, AnSshdThatForwardsNothing) {
  pool().replicas.push_back(replica_ready("b"));
  replica().live = false;
  replica().state = "waiting";
  const nodes::SshTarget target{.host = "a.lan"};
  replica().last_error =
      "its sshd closes what is forwarded to it; " + nodes::forward_remedy(target, "/s/1.sock");
  const std::string found = troubles();
  EXPECT_NE(found.find(" -> set AllowStreamLocalForwarding yes in the sshd_config of a.lan"),
            std::string::npos)
      << found;
}
TEST_F(Diagnosis, APoolWithoutALiveReplica) {
  replica().live = false;
  replica().state = "waiting (node away)";
  expect_only("failure  pool m: no replica serves", "their rows");
}
TEST_F(Diagnosis, ALoadThatStandsStill) {
  api::LoadingStatus loading;
  loading.alias = "m";
  loading.nodes.push_back({.node = "a",
                           .phase = "loading",
                           .loaded_bytes = 10 * kMiB,
                           .total_bytes = 90 * kMiB,
                           .bytes_per_s = 0,
                           .stalled = true});
  facts_.loading = {loading};
  expect_only("failure a loading m: stands still at 10 of 90 MiB", "disk or network share");
}
TEST_F(Diagnosis, NothingLoaded) {
  facts_.pools.clear();
  expect_only("warning  pools: nothing is loaded", "flotilla load lab MODEL.gguf --batch");
}
TEST_F(Diagnosis, AModelThatCannotBeBatched) {
  pool().batch = false;
  pool().batch_reason = "its cache cannot be batched";
  expect_only("warning  pool m, batch: loaded with batch and runs one request at a time: its cache",
              "docs/models.md");
}
TEST_F(Diagnosis, AQueueThatIsAlmostFull) {
  pool().queue_depth = 90;
  expect_only("warning  pool m, queue: 90 of 100 places to wait are taken", "add a node");
}
TEST_F(Diagnosis, RequestsThatWaitBecauseNothingIsBatched) {
  facts_.pools[0].batch_asked = false;
  pool().batch = false;
  pool().queue_depth = 5;
  expect_only("warning  pool m, queue: 5 requests wait", "flotilla reload lab m --batch");
}
TEST_F(Diagnosis, AServerOfItsOwnThatDoesNotAnswer) {
  pool().replicas.push_back(replica_ready("b"));
  facts_.nodes[0].transport = "http";
  facts_.nodes[0].version.clear();
  replica().live = false;
  replica().state = "waiting";
  replica().last_error = "http://a.lan:8080/v1: Connection refused";
  const std::string found = troubles();
  EXPECT_NE(found.find("failure a replica of m: it does not come up: http://a.lan:8080/v1: "
                       "Connection refused"),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("start that server"), std::string::npos) << found;
}

// --- The server itself ---

ServerFacts good_server() {
  return {.state_dir = "/var/lib/flotilla",
          .state_free_bytes = kGiB,
          .open_files_max = 65536,
          .keys = {},
          .unix_s = 1'000'000};
}

std::string server_troubles(const ServerFacts& facts) {
  std::string out;
  for (const api::Finding& finding : diagnose(facts)) {
    EXPECT_EQ(finding.cluster + finding.node, "");
    if (finding.level != Level::Ok)
      out += std::string(api::to_string(finding.level)) + " " + finding.check + ": " +
             finding.detail + " -> " + finding.fix + "\n";
  }
  return out;
}

TEST(ServerDiagnosis, AGoodServerHasNoTrouble) { EXPECT_EQ(server_troubles(good_server()), ""); }

TEST(ServerDiagnosis, ADiskWithoutRoomForTheState) {
  ServerFacts facts = good_server();
  facts.state_free_bytes = 5 * kMiB;
  EXPECT_EQ(server_troubles(facts),
            "failure state: 5 MiB are free in /var/lib/flotilla -> make room there: what is "
            "declared cannot be written\n");
}

TEST(ServerDiagnosis, TooFewFilesForManyStreams) {
  ServerFacts facts = good_server();
  facts.open_files_max = 1024;
  EXPECT_TRUE(server_troubles(facts).starts_with("warning open files: 1024"));
}

TEST(ServerDiagnosis, KeysThatHaveExpired) {
  ServerFacts facts = good_server();
  api::KeyShown old;
  old.spec.name = "old";
  old.spec.expires_unix_s = 999'999;
  facts.keys = {old};
  EXPECT_TRUE(server_troubles(facts).starts_with("failure keys: every API key has expired"));
  facts.keys.emplace_back().spec.name = "good";
  EXPECT_TRUE(server_troubles(facts).starts_with("warning keys: 1 of 2 API keys have expired"));
  facts.keys.erase(facts.keys.begin());
  EXPECT_EQ(server_troubles(facts), "");
}

}  // namespace
}  // namespace flotilla::gateway
