#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

// What an operator declared and a restart must bring back, and what was done and used. Only place
// of SQLite. Every call blocks on the disk; the gateway makes them on its one-thread pool.
namespace flotilla::store {

struct StoredCluster {
  std::string id;
  std::string body;  // api::ClusterSpec as JSON
};

struct StoredPool {
  std::string alias;
  std::string cluster;
  std::string body;  // api::LoadSpec as JSON
  std::int64_t generation = 0;
};

struct StoredKey {
  std::string id;
  std::string hash;  // of the secret, which is nowhere
  std::string body;  // api::KeySpec as JSON
  std::int64_t created_unix_s = 0;
};

// Who did what: the audit.
struct StoredEvent {
  std::int64_t at_unix_ms = 0;
  std::string who;
  std::string action;
  int status = 0;  // of the answer
  std::string detail;
};

// What one API key used in one day. A key that was taken back keeps its name here.
struct StoredUsage {
  std::int64_t day = 0;  // since 1970, UTC
  std::string key = {};  // its id; empty: without one
  std::string name = {};
  std::int64_t requests = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of the prompts
  std::int64_t generated_tokens = 0;
};

// One thread at a time. A write is one transaction, on disk when it returns.
class Store {
 public:
  // Opens or creates `file` (mode 0600) and brings its schema N up to date; a copy of the older one
  // is kept as FILE.schema-N and named in notice(). A file that is not a whole database is renamed
  // to FILE.broken-N, never overwritten, and named in warning(); a schema newer than ours is
  // Conflict.
  static Result<Store> open(const std::filesystem::path& file);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const std::string& warning() const;
  const std::string& notice() const;

  Result<std::vector<StoredCluster>> clusters() const;
  Result<void> put_cluster(const StoredCluster& cluster);
  Result<void> delete_cluster(const std::string& id);  // and its pools

  Result<std::vector<StoredPool>> pools() const;
  Result<void> put_pool(const StoredPool& pool);
  Result<void> delete_pool(const std::string& alias);

  // Settings that an operator stored, by name; nullopt takes one back. All or none.
  Result<std::map<std::string, std::string>> settings() const;
  Result<void> put_settings(const std::map<std::string, std::optional<std::string>>& changes);

  Result<std::vector<StoredKey>> keys() const;
  Result<void> put_key(const StoredKey& key);  // a new one
  // Its body. NotFound: there is none of that id, and none is made.
  Result<void> change_key(const StoredKey& key);
  Result<void> delete_key(const std::string& id);

  // The last 10,000 of those who were let in are kept, and the last 1,000 of those who were not
  // (status 401), so that the latter push nothing out; newest first.
  Result<std::vector<StoredEvent>> events(int most) const;
  Result<void> add_event(const StoredEvent& event);

  // Adds to what is there, all or nothing; what is 400 days older than the newest goes.
  Result<void> add_usage(const std::vector<StoredUsage>& more);
  Result<std::vector<StoredUsage>> usage_by_key() const;  // of all days; `day` is the newest
  Result<std::vector<StoredUsage>> usage_by_day() const;  // of all keys, newest first

  // Counts loads for ever, so that no two loads of this server share a generation.
  Result<std::int64_t> next_generation();

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flotilla::store
