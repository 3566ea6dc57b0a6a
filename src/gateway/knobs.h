#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/operations.h"
#include "base/result.h"

namespace flotilla::gateway {

// Every setting that an operator may turn, by its name in the environment. Defaults are the
// product's.
struct Knobs {
  int runner_batch_size = 8;  // sequences that decode together on a replica loaded with batch, 1-64
  int runner_prefill_batch = 4;     // prompts prefilled together; runners are told where it is set
  int runner_ahead = 2;             // requests tokenised ahead in a replica with batch
  int replica_max_concurrent = 16;  // in a home and waiting for it, before a conversation moves
  std::chrono::seconds replica_affinity_ttl{1800};
  std::chrono::seconds replica_watchdog{30};
  std::chrono::seconds replica_restart_timeout{900};
  std::chrono::milliseconds replica_backoff_min{30'000};
  std::chrono::milliseconds replica_backoff_max{300'000};
  std::chrono::milliseconds replica_stable{60'000};
  int queue_max = 4096;  // requests that wait, over a pool
  std::int64_t queue_max_bytes = 256LL << 20;
  std::chrono::seconds queue_max_age{600};
  std::chrono::seconds request_deadline{600};  // to the first token
  std::int64_t body_max_bytes = 32LL << 20;
  std::chrono::seconds drain{120};
  std::chrono::seconds agent_grace{60};     // runners outlive a gateway that went away by so long
  bool replica_max_concurrent_set = false;  // else it grows with the width

  // What the runners read from their environment themselves.
  std::map<std::string, std::string> for_runners;
};

// Where values come from, the first that has one: flag, environment, stored, file, default.
struct KnobSources {
  using Lookup = std::function<const char*(const char* name)>;
  std::map<std::string, double> flags = {};
  Lookup environment = {};
  std::map<std::string, std::string> stored = {};
  std::map<std::string, double> file = {};
};

// The knobs and where each value comes from. One of a flag or of the environment is pinned. I/O
// thread only.
class Settings {
 public:
  // InvalidArgument names a variable of the environment, its value and what it may be. A stored
  // value that is out of range (by another version) is skipped.
  static Result<Settings> read(const KnobSources& sources);
  // The table by itself: names, defaults, bounds, words.
  static std::vector<api::SettingShown> table();

  const Knobs& knobs() const { return knobs_; }
  std::vector<api::SettingShown> list() const;

  // All or none: unknown names and values out of range are InvalidArgument, pinned knobs Conflict.
  Result<void> check(const api::SettingChanges& changes) const;
  // Checked ones, as the store keeps them; and their effect.
  static std::map<std::string, std::optional<std::string>> texts(
      const api::SettingChanges& changes);
  void apply(const api::SettingChanges& changes);

 private:
  struct Pinned {
    double value = 0;
    const char* source = "";  // flag, environment
  };
  struct Found {
    double value = 0;
    const char* source = "default";
  };
  Found find(const std::string& name, double standard) const;
  void work_out();

  std::map<std::string, Pinned> pinned_;
  std::map<std::string, double> stored_;
  std::map<std::string, double> file_;
  Knobs knobs_;
};

}  // namespace flotilla::gateway
