#include "cluster/load_plan.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace flotilla::cluster {
namespace {

using std::chrono::seconds;

ReplicaStatus replica(ReplicaState state, bool over, std::string error = {}) {
  ReplicaStatus out;
  out.node = NodeId("n" + std::to_string(static_cast<int>(state)));
  out.state = state;
  out.live = state == ReplicaState::Ready;
  out.first_attempt_over = over;
  out.last_error = std::move(error);
  return out;
}

TEST(LoadAnswer, waits_until_every_replica_is_ready_or_failed_once) {
  const ReplicaStatus ready = replica(ReplicaState::Ready, true);
  const ReplicaStatus loading = replica(ReplicaState::Loading, false);
  const ReplicaStatus failed = replica(ReplicaState::Waiting, true, "no such file");
  EXPECT_EQ(load_answer(std::vector{ready, loading}), LoadAnswer::Pending);
  EXPECT_EQ(load_answer(std::vector{ready, failed}), LoadAnswer::Loaded);
  EXPECT_EQ(load_answer(std::vector{failed, failed}), LoadAnswer::Failed);
  EXPECT_EQ(load_answer(std::vector<ReplicaStatus>{}), LoadAnswer::Failed);
}

TEST(LoadAnswer, a_second_attempt_under_way_does_not_delay_it) {
  EXPECT_EQ(load_answer(std::vector{replica(ReplicaState::Loading, true)}), LoadAnswer::Failed);
}

TEST(LoadAnswer, failures_name_each_node) {
  const std::vector replicas = {replica(ReplicaState::Waiting, true, "no such file"),
                                replica(ReplicaState::Ready, true)};
  EXPECT_EQ(load_failures(replicas), "n5: no such file");
}

TEST(LoadMeter, rate_eta_and_growth) {
  Instant now = Instant{} + seconds(100);
  LoadMeter meter;
  meter.start(now);
  EXPECT_FALSE(meter.eta(now));
  for (std::uint64_t i = 1; i <= 10; ++i) {
    now += seconds(1);
    meter.add(i * 1000, 20'000, now);
  }
  EXPECT_NEAR(meter.bytes_per_s(now), 1000, 1);
  EXPECT_NEAR(to_s(meter.eta(now).value()), 10, 0.1);
  EXPECT_TRUE(meter.eta(now + seconds(2)));
  const Instant grew = now;
  now += seconds(5);
  meter.add(10'000, 20'000, now);
  EXPECT_EQ(meter.grew(), grew);
  EXPECT_EQ(meter.bytes_per_s(now), 0) << "none came in the last seconds";
  EXPECT_FALSE(meter.eta(now));
}

}  // namespace
}  // namespace flotilla::cluster
