#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/admin.h"
#include "api/agent_frames.h"
#include "base/result.h"

// What /admin/nodes says of machines.
namespace flotilla::api {

// One runner's memory, by the pool that it is a replica of.
struct ReplicaMemory {
  std::string alias;
  std::string node;
  std::int64_t rss_bytes = 0;
};
struct NodeTelemetry {
  NodeStatus status;
  AgentTelemetry machine;
  std::vector<ReplicaMemory> replicas;
};
// GET /admin/nodes/{n}/telemetry; and all of them: GET /admin/nodes.
std::string to_json(const NodeTelemetry& node);
std::string nodes_json(const std::vector<NodeTelemetry>& nodes);

// POST /admin/nodes/test: it can be reached, and what is there.
struct NodeTest {
  std::string node;
  std::string version;
  bool outdated = false;
  std::string model;   // of an http node: what its server serves it as
  std::string engine;  // of an http node: whose it is, if it says so
  double took_ms = 0;
};
std::string to_json(const NodeTest& test);

// POST /admin/nodes/{n}/trust. Without a fingerprint nothing is stored.
struct TrustOrder {
  std::string fingerprint;  // "SHA256:…"
};
Result<TrustOrder> parse_trust(std::string_view body);
struct TrustAnswer {
  std::string node;
  std::string host;
  std::vector<std::string> fingerprints;  // that the machine shows: "SHA256:… (ED25519)"
  std::string file;                       // the known_hosts of the server's user
  bool known = false;
  bool changed = false;  // known_hosts has another one
};
std::string to_json(const TrustAnswer& answer);
Result<TrustAnswer> read_trust_answer(std::string_view body);

// POST /admin/nodes/{n}/bootstrap
struct BootstrapAnswer {
  std::string node;
  std::string platform;
  std::string path;     // where the program lies there now
  std::string version;  // that it says it is
  bool restarted = false;
  bool up = false;  // its link, at the end
};
std::string to_json(const BootstrapAnswer& answer);
Result<BootstrapAnswer> read_bootstrap_answer(std::string_view body);

}  // namespace flotilla::api
