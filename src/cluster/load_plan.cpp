#include "cluster/load_plan.h"

#include <algorithm>
#include <chrono>

namespace flotilla::cluster {

namespace {
constexpr Duration kSample = std::chrono::milliseconds(500);
constexpr double kSmooth = 0.3;
constexpr Duration kPause = std::chrono::seconds(3);  // after it the rate of before says nothing
}  // namespace

void LoadMeter::start(Instant now) {
  loaded_ = total_ = sampled_bytes_ = 0;
  rate_ = 0;
  grew_ = sampled_ = now;
}

void LoadMeter::add(std::uint64_t loaded, std::uint64_t total, Instant now) {
  total_ = total;
  if (loaded > loaded_) {
    loaded_ = loaded;
    grew_ = now;
  }
  const Duration passed = now - sampled_;
  if (passed < kSample) return;
  const double rate = static_cast<double>(loaded_ - sampled_bytes_) / to_s(passed);
  rate_ = sampled_bytes_ == 0 ? rate : rate_ + kSmooth * (rate - rate_);
  sampled_ = now;
  sampled_bytes_ = loaded_;
}

double LoadMeter::bytes_per_s(Instant now) const { return now - grew_ < kPause ? rate_ : 0; }

std::optional<Duration> LoadMeter::eta(Instant now) const {
  const double rate = bytes_per_s(now);
  if (rate <= 1 || total_ == 0) return std::nullopt;
  const auto left = static_cast<double>(total_ - std::min(loaded_, total_));
  const double seconds = std::min(left / rate, 1e6);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

LoadAnswer load_answer(std::span<const ReplicaStatus> replicas) {
  bool one_up = false;
  for (const ReplicaStatus& replica : replicas) {
    if (replica.live) one_up = true;
    if (!replica.first_attempt_over && replica.state != ReplicaState::Stopped) {
      return LoadAnswer::Pending;
    }
  }
  return one_up ? LoadAnswer::Loaded : LoadAnswer::Failed;
}

std::string load_failures(std::span<const ReplicaStatus> replicas) {
  std::string out;
  for (const ReplicaStatus& replica : replicas) {
    if (replica.live) continue;
    if (!out.empty()) out += "; ";
    out +=
        replica.node.str() + ": " + (replica.last_error.empty() ? "not ready" : replica.last_error);
  }
  return out;
}

std::optional<Duration> load_eta(std::span<const ReplicaStatus> replicas) {
  std::optional<Duration> slowest;
  for (const ReplicaStatus& replica : replicas) {
    if (replica.state != ReplicaState::Starting && replica.state != ReplicaState::Loading) continue;
    if (!replica.eta) return std::nullopt;
    slowest = std::max(slowest.value_or(Duration::zero()), *replica.eta);
  }
  return slowest;
}

}  // namespace flotilla::cluster
