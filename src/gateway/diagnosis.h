#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/admin.h"
#include "api/doctor.h"
#include "api/inventory.h"
#include "api/keys.h"

namespace flotilla::gateway {

// What is known of a cluster when somebody asks what is wrong with it.
struct ClusterFacts {
  struct Pool {
    api::PoolStatus status;
    bool batch_asked = false;
    int queue_max = 0;
    std::vector<api::NodePreflight> preflight;  // empty: its model is no file
  };
  std::string cluster;
  std::vector<api::NodeStatus> nodes;
  std::map<std::string, api::AgentTelemetry> machines;  // by node, of those that are up
  std::vector<Pool> pools;
  std::vector<api::LoadingStatus> loading;
};

// And of the server itself.
struct ServerFacts {
  std::string state_dir;
  std::int64_t state_free_bytes = 0;
  std::uint64_t open_files_max = 0;
  std::vector<api::KeyShown> keys;
  std::int64_t unix_s = 0;
};

// Pure: what each fact comes to, good ones too, and what would do about the others.
std::vector<api::Finding> diagnose(const ClusterFacts& facts);
std::vector<api::Finding> diagnose(const ServerFacts& facts);

}  // namespace flotilla::gateway
