#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/ticket.h"
#include "store/store.h"

namespace flotilla::gateway {

// What requests came to, by API key and day, from their end until it is on disk. Pure. I/O thread
// only.
class UsageTally {
 public:
  struct Spender {
    std::string key = {};  // its id; empty: without one
    std::string name = {};
  };
  // One request that was let in, however it ended.
  void add(const Spender& spender, const cluster::Usage& usage, std::int64_t unix_s);

  bool empty() const { return spent_.empty(); }
  // All of it, to be written; put_back() when that failed.
  std::vector<store::StoredUsage> take();
  void put_back(const std::vector<store::StoredUsage>& taken);

 private:
  void add(const store::StoredUsage& more);

  std::map<std::pair<std::int64_t, std::string>, store::StoredUsage> spent_;  // by day and key
};

}  // namespace flotilla::gateway
