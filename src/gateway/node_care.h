#pragma once

#include <string>

#include "api/node_answers.h"
#include "base/task.h"
#include "gateway/control.h"

// What is done to a machine by hand: looked at, trusted, given our program. Each through an ssh of
// its own, beside the link.
namespace flotilla::gateway {

struct CareOptions {
  Executor executor;
  const Clock* clock = nullptr;
  Control* control = nullptr;
  std::filesystem::path state_dir;
  std::string version;
};

// Unprocessable says why it cannot be used, with what would do.
Task<api::NodeTest> test_node(CareOptions care, api::NodeSpec node);
Task<api::TrustAnswer> trust_node(CareOptions care, api::NodeSpec node, api::TrustOrder order);
// Its replicas drain, our program is put there if we have it for its platform, its agent starts
// anew, the replicas come back.
Task<api::BootstrapAnswer> bootstrap_node(CareOptions care, api::NodeSpec node);

}  // namespace flotilla::gateway
