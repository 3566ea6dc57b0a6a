#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/inventory.h"
#include "api/node_spec.h"
#include "api/transfers.h"
#include "base/result.h"

// Which node a model is copied from. Pure: what the nodes said is given.
namespace flotilla::gateway {

// Where a node's files lie: the machine and the folder.
using Place = std::pair<std::string, std::string>;
Place place_of(const api::NodeSpec& node);

// A node that has a file of the model's name.
struct Holder {
  api::NodeSpec node = {};
  std::int64_t bytes = 0;
  std::string hash = {};  // empty: not known
  bool wanted = false;    // it, or what shares its folder, is to get the file
};
std::vector<Holder> holders_of(const api::SyncSpec& spec, const std::vector<api::NodeModels>& asked,
                               const std::vector<api::NodeSpec>& all);

// Nothing says that they are two.
bool is_same_file(const Holder& one, const Holder& other);
// Files of one size are there that only their hashes would tell apart.
bool needs_hashes(const std::vector<Holder>& holders);

// The node that is named; else one that is not to get it, if there is one, whose file is in most of
// their folders; of equals this machine: its bytes cross the network once. There must be a holder.
// NotFound: the named one has none. Conflict: another file is in as many.
Result<Holder> choose_source(const std::vector<Holder>& holders, const api::SyncSpec& spec);

// Where nobody lacks it. Conflict: one has another file of that name, and was not named.
Result<void> check_others(const std::vector<Holder>& holders, const Holder& source);

}  // namespace flotilla::gateway
