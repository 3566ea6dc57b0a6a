#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "cluster/status.h"

namespace flotilla::cluster {

// How fast one replica loads, from the bytes it reports.
class LoadMeter {
 public:
  void start(Instant now);
  void add(std::uint64_t loaded, std::uint64_t total, Instant now);

  std::uint64_t loaded() const { return loaded_; }
  std::uint64_t total() const { return total_; }
  double bytes_per_s(Instant now) const;  // 0 where none came in the last seconds
  Instant grew() const { return grew_; }  // when bytes last grew (or the attempt began)
  std::optional<Duration> eta(Instant now) const;

 private:
  std::uint64_t loaded_ = 0;
  std::uint64_t total_ = 0;
  double rate_ = 0;
  Instant grew_{};
  Instant sampled_{};
  std::uint64_t sampled_bytes_ = 0;
};

// When is `POST …/load` answered: as soon as every replica is ready or has failed its first
// attempt. One that is ready makes it a success; the rest heal.
enum class LoadAnswer : std::uint8_t { Pending, Loaded, Failed };
LoadAnswer load_answer(std::span<const ReplicaStatus> replicas);

// Each node's reason, for the 502: "a: exit 1: ...; b: node away".
std::string load_failures(std::span<const ReplicaStatus> replicas);

// The slowest replica's; nothing while one that loads has none.
std::optional<Duration> load_eta(std::span<const ReplicaStatus> replicas);

}  // namespace flotilla::cluster
