#include "gateway/knobs.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

KnobSources::Lookup environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

api::SettingShown find(const Settings& settings, const std::string& name) {
  for (const auto& one : settings.list()) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(SettingsTest, DefaultsAreTheKnobsOwn) {
  const auto settings = Settings::read({});
  ASSERT_TRUE(settings);
  // Each entry's default, written out, is what the struct has.
  api::SettingChanges all;
  for (const auto& one : settings->list()) {
    if (one.name != "REPLICA_MAX_CONCURRENT") all[one.name] = one.standard;
  }
  Settings same = *settings;
  same.apply(all);
  const Knobs& knobs = same.knobs();
  const Knobs fresh;
  EXPECT_EQ(knobs.runner_batch_size, fresh.runner_batch_size);
  EXPECT_EQ(knobs.replica_backoff_max, fresh.replica_backoff_max);
  EXPECT_EQ(knobs.replica_stable, fresh.replica_stable);
  EXPECT_EQ(knobs.queue_max_bytes, fresh.queue_max_bytes);
  EXPECT_EQ(knobs.body_max_bytes, fresh.body_max_bytes);
  EXPECT_EQ(knobs.request_deadline, fresh.request_deadline);
  EXPECT_EQ(knobs.agent_grace, fresh.agent_grace);
  EXPECT_EQ(knobs.drain, fresh.drain);
}

TEST(SettingsTest, FlagGoesBeforeEnvironmentBeforeStoredBeforeFileBeforeDefault) {
  const auto settings = Settings::read(
      {.flags = {{"QUEUE_MAX_AGE_S", 6}},
       .environment = environment_of({{"QUEUE_MAX", "7"}, {"QUEUE_MAX_AGE_S", "9"}}),
       .stored = {{"QUEUE_MAX", "8"}, {"RUNNER_AHEAD", "5"}, {"QUEUE_MAX_AGE_S", "8"}},
       .file = {{"QUEUE_MAX", 3}, {"RUNNER_AHEAD", 4}, {"AGENT_GRACE_S", 3}}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->knobs().queue_max, 7);
  EXPECT_EQ(settings->knobs().runner_ahead, 5);
  EXPECT_EQ(settings->knobs().queue_max_age, std::chrono::seconds(6));
  EXPECT_EQ(settings->knobs().agent_grace, std::chrono::seconds(3));
  EXPECT_EQ(find(*settings, "QUEUE_MAX_AGE_S").source, "flag");
  EXPECT_EQ(find(*settings, "QUEUE_MAX").source, "environment");
  EXPECT_EQ(find(*settings, "AGENT_GRACE_S").source, "file");
  EXPECT_EQ(find(*settings, "RUNNER_AHEAD").source, "stored");
  EXPECT_EQ(find(*settings, "DRAIN_S").source, "default");
}

TEST(SettingsTest, RefusesWhatIsUnknownOutOfRangeOrPinned) {
  const auto settings = Settings::read({.environment = environment_of({{"QUEUE_MAX", "7"}})});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->check({{"QUEUE_MIX", 1.0}}).error().code, Code::InvalidArgument);
  EXPECT_EQ(settings->check({{"RUNNER_AHEAD", 65.0}}).error().code, Code::InvalidArgument);
  EXPECT_EQ(settings->check({{"QUEUE_MAX", 9.0}}).error().code, Code::Conflict);
  EXPECT_TRUE(settings->check({{"RUNNER_AHEAD", 3.0}, {"DRAIN_S", std::nullopt}}));
  EXPECT_FALSE(Settings::read({.environment = environment_of({{"QUEUE_MAX", "many"}})}));
  // Of another version's store.
  EXPECT_TRUE(Settings::read({.stored = {{"QUEUE_MAX", "-1"}, {"GONE", "1"}}}));
}

TEST(SettingsTest, WhatIsStoredAndTakenBackUncoversTheFile) {
  auto settings = Settings::read({.file = {{"QUEUE_MAX", 3}}});
  ASSERT_TRUE(settings);
  settings->apply({{"QUEUE_MAX", 9.0}});
  EXPECT_EQ(settings->knobs().queue_max, 9);
  settings->apply({{"QUEUE_MAX", std::nullopt}});
  EXPECT_EQ(settings->knobs().queue_max, 3);
  EXPECT_EQ(find(*settings, "QUEUE_MAX").source, "file");
}

TEST(SettingsTest, AppliesAndTakesBack) {
  auto settings = Settings::read({});
  ASSERT_TRUE(settings);
  settings->apply({{"RUNNER_PREFILL_BATCH", 2.0}, {"REPLICA_MAX_CONCURRENT", 3.0}});
  EXPECT_EQ(settings->knobs().for_runners.at("RUNNER_PREFILL_BATCH"), "2");
  EXPECT_EQ(settings->knobs().runner_prefill_batch, 2);
  EXPECT_TRUE(settings->knobs().replica_max_concurrent_set);
  settings->apply(
      {{"RUNNER_PREFILL_BATCH", std::nullopt}, {"REPLICA_MAX_CONCURRENT", std::nullopt}});
  EXPECT_TRUE(settings->knobs().for_runners.empty());
  EXPECT_EQ(settings->knobs().runner_prefill_batch, 4);
  EXPECT_FALSE(settings->knobs().replica_max_concurrent_set);
}

}  // namespace
}  // namespace flotilla::gateway
