#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/admin.h"

// GET /admin/declared: clusters and pools as they were asked for, so that a file can be held
// against them.
namespace flotilla::api {

struct DeclaredPool {
  std::string cluster;
  LoadSpec load;
};

struct Declared {
  std::vector<ClusterSpec> clusters;
  std::vector<DeclaredPool> pools;
  // By node id, for http nodes that have a key: tells whether it is a certain one, and no more.
  std::map<std::string, std::string> api_key_fingerprints;
};

// 12 hex digits; the same key gives another one on each node.
std::string api_key_fingerprint(std::string_view node, std::string_view api_key);

// Fingerprints are worked out from the clusters' keys, which are left out.
std::string to_json(const Declared& declared);
// Strict: what this program does not know it could neither compare nor write out, so it is an error
// that says so.
Result<Declared> read_declared(std::string_view body);

}  // namespace flotilla::api
