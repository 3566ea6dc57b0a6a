#include "gateway/knobs.h"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"
#include "base/nearest.h"
#include "base/numbers.h"

namespace flotilla::gateway {
namespace {

// One knob: its name, the values it may have, where its value goes, and what it does.
struct Entry {
  const char* name;
  double standard, min, max;
  const char* applies;
  const char* about;
  void (*set)(Knobs&, double);
};

constexpr const char* kAtOnce = "at once";
constexpr const char* kNextLoad = "next load";
constexpr const char* kRestart = "restart";

template <class Unit>
Unit seconds_to(double value) {
  return std::chrono::duration_cast<Unit>(std::chrono::duration<double>(value));
}

template <auto Member>
void set_seconds(Knobs& knobs, double value) {
  auto& member = knobs.*Member;
  member = seconds_to<std::remove_reference_t<decltype(member)>>(value);
}

template <auto Member>
void set_number(Knobs& knobs, double value) {
  auto& member = knobs.*Member;
  member = static_cast<std::remove_reference_t<decltype(member)>>(value);
}

void set_max_concurrent(Knobs& knobs, double value) {
  knobs.replica_max_concurrent = static_cast<int>(value);
  knobs.replica_max_concurrent_set = true;
}

// Whole numbers without an exponent: runners read them as integers.
std::string shown(double value) {
  constexpr double exact = 1LL << 53;
  if (value == std::trunc(value) && std::abs(value) < exact) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{}", value);
}

void set_prefill_batch(Knobs& knobs, double value) {
  knobs.runner_prefill_batch = static_cast<int>(value);
  knobs.for_runners["RUNNER_PREFILL_BATCH"] = shown(value);
}

constexpr double kDay = 86400;
constexpr Entry kTable[] = {
    {"RUNNER_BATCH_SIZE", 8, 1, 64, kNextLoad, "Sequences that decode together with batch",
     set_number<&Knobs::runner_batch_size>},
    {"RUNNER_AHEAD", 2, 0, 64, kNextLoad, "Requests tokenised ahead in a replica with batch",
     set_number<&Knobs::runner_ahead>},
    {"RUNNER_PREFILL_BATCH", 4, 1, 64, kNextLoad, "Prompts prefilled together", set_prefill_batch},
    {"RUNNER_STEP_TARGET_MS", 0, 0, 60'000, kNextLoad,
     "Wanted length of a pass that decodes and prefills; 0: by measurement", nullptr},
    {"BG_CLEAR_CACHE_EVERY", 512, 0, 1e9, kNextLoad,
     "Answered tokens between two looks for memory to give back; 0: never", nullptr},
    {"SESSION_STORE_BYTES", -1, -1, 1e15, kNextLoad,
     "Memory of a replica for conversations that do not compute; -1: a quarter of what is free "
     "after the load, 0: none",
     nullptr},
    {"SESSION_STORE_DISK_BYTES", 0, 0, 1e15, kNextLoad,
     "Disk of a replica for conversations that memory has no room for; 0: none", nullptr},
    {"REPLICA_MAX_CONCURRENT", 16, 1, 100'000, kAtOnce,
     "Requests in a home and waiting for it before a conversation moves; unless set at least twice "
     "the width",
     set_max_concurrent},
    {"REPLICA_AFFINITY_TTL_S", 1800, 1, 30 * kDay, kAtOnce,
     "How long an idle conversation keeps "
     "its home",
     set_seconds<&Knobs::replica_affinity_ttl>},
    {"REPLICA_WATCHDOG_S", 30, 1, kDay, kAtOnce, "Silence after which a replica counts as hung",
     set_seconds<&Knobs::replica_watchdog>},
    {"REPLICA_RESTART_TIMEOUT_S", 900, 1, kDay, kAtOnce, "Longest attempt whose bytes stand still",
     set_seconds<&Knobs::replica_restart_timeout>},
    {"REPLICA_BACKOFF_MIN_S", 30, 0.05, kDay, kAtOnce, "First wait between two attempts",
     set_seconds<&Knobs::replica_backoff_min>},
    {"REPLICA_BACKOFF_MAX_S", 300, 0.05, kDay, kAtOnce, "Longest wait between two attempts",
     set_seconds<&Knobs::replica_backoff_max>},
    {"REPLICA_STABLE_S", 60, 0, kDay, kAtOnce,
     "Ready for so long, a lost replica is started anew at once",
     set_seconds<&Knobs::replica_stable>},
    {"QUEUE_MAX", 4096, 1, 1e6, kAtOnce, "Requests that wait, over a pool",
     set_number<&Knobs::queue_max>},
    {"QUEUE_MAX_BYTES", 256.0 * (1 << 20), 1 << 20, 1e12, kAtOnce, "Bytes of those requests",
     set_number<&Knobs::queue_max_bytes>},
    {"QUEUE_MAX_AGE_S", 600, 1, kDay, kAtOnce, "Longest wait in the queue",
     set_seconds<&Knobs::queue_max_age>},
    {"REQUEST_DEADLINE_S", 600, 1, kDay, kAtOnce, "Longest wait for the first token",
     set_seconds<&Knobs::request_deadline>},
    {"BODY_MAX_BYTES", 32.0 * (1 << 20), 1 << 10, 1 << 30, kRestart, "Largest request body",
     set_number<&Knobs::body_max_bytes>},
    {"DRAIN_S", 120, 0, kDay, kAtOnce, "How long streams may finish before an end or a reload",
     set_seconds<&Knobs::drain>},
    {"AGENT_GRACE_S", 60, 0, kDay, kRestart, "How long runners outlive a server that went away",
     set_seconds<&Knobs::agent_grace>},
};

const Entry* find_entry(std::string_view name) {
  for (const Entry& entry : kTable) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

Result<double> check_range(const Entry& entry, std::optional<double> value,
                           std::string_view shown) {
  if (value && std::isfinite(*value) && *value >= entry.min && *value <= entry.max) return *value;
  return fail(Error{.code = Code::InvalidArgument,
                    .message = fmt::format("{} is \"{}\"; it takes a number from {} to {}",
                                           entry.name, shown, entry.min, entry.max),
                    .param = entry.name});
}

Result<double> read_number(const Entry& entry, std::string_view text) {
  return check_range(entry, parse_double(text), text);
}

}  // namespace

Result<Settings> Settings::read(const KnobSources& sources) {
  Settings settings;
  for (const Entry& entry : kTable) {
    const char* text = sources.environment ? sources.environment(entry.name) : nullptr;
    if (text != nullptr) {
      const auto value = read_number(entry, text);
      if (!value) return fail(value.error());
      settings.pinned_[entry.name] = {.value = *value, .source = "environment"};
    }
    if (const auto flag = sources.flags.find(entry.name); flag != sources.flags.end())
      settings.pinned_[entry.name] = {.value = flag->second, .source = "flag"};
    if (const auto kept = sources.stored.find(entry.name); kept != sources.stored.end()) {
      if (const auto value = read_number(entry, kept->second))
        settings.stored_[entry.name] = *value;
    }
  }
  settings.file_ = sources.file;
  settings.work_out();
  return settings;
}

std::vector<api::SettingShown> Settings::table() { return Settings().list(); }

Settings::Found Settings::find(const std::string& name, double standard) const {
  if (const auto pinned = pinned_.find(name); pinned != pinned_.end())
    return {.value = pinned->second.value, .source = pinned->second.source};
  if (const auto stored = stored_.find(name); stored != stored_.end())
    return {.value = stored->second, .source = "stored"};
  if (const auto file = file_.find(name); file != file_.end())
    return {.value = file->second, .source = "file"};
  return {.value = standard};
}

void Settings::work_out() {
  knobs_ = Knobs{};
  for (const Entry& entry : kTable) {
    const Found found = find(entry.name, entry.standard);
    if (std::string_view(found.source) == "default") continue;
    if (entry.set != nullptr) {
      entry.set(knobs_, found.value);
    } else {
      knobs_.for_runners[entry.name] = shown(found.value);
    }
  }
  if (knobs_.replica_backoff_min > knobs_.replica_backoff_max)
    knobs_.replica_backoff_max = knobs_.replica_backoff_min;
}

std::vector<api::SettingShown> Settings::list() const {
  std::vector<api::SettingShown> out;
  for (const Entry& entry : kTable) {
    const Found found = find(entry.name, entry.standard);
    api::SettingShown& setting = out.emplace_back();
    setting.name = entry.name;
    setting.value = found.value;
    setting.standard = entry.standard;
    setting.min = entry.min;
    setting.max = entry.max;
    setting.applies = entry.applies;
    setting.about = entry.about;
    setting.source = found.source;
  }
  return out;
}

Result<void> Settings::check(const api::SettingChanges& changes) const {
  for (const auto& [name, value] : changes) {
    const Entry* entry = find_entry(name);
    if (entry == nullptr) {
      std::vector<std::string_view> known;
      for (const Entry& one : kTable) known.emplace_back(one.name);
      return fail(Error{.code = Code::InvalidArgument,
                        .message = fmt::format("there is no setting \"{}\";{} GET /admin/settings "
                                               "lists them",
                                               name, did_you_mean(name, known)),
                        .param = name});
    }
    if (const auto pinned = pinned_.find(name); pinned != pinned_.end()) {
      return fail(Error{
          .code = Code::Conflict,
          .message = fmt::format(
              "{} is pinned to {} by {} of the server; take it "
              "out there and start again",
              name, shown(pinned->second.value),
              pinned->second.source == std::string_view("flag") ? "a flag" : "the environment"),
          .param = name});
    }
    if (!value) continue;
    if (auto fits = check_range(*entry, value, shown(*value)); !fits) return fail(fits.error());
  }
  return {};
}

std::map<std::string, std::optional<std::string>> Settings::texts(
    const api::SettingChanges& changes) {
  std::map<std::string, std::optional<std::string>> out;
  for (const auto& [name, value] : changes)
    out[name] = value ? std::optional(shown(*value)) : std::nullopt;
  return out;
}

void Settings::apply(const api::SettingChanges& changes) {
  for (const auto& [name, value] : changes) {
    CHECK(find_entry(name) != nullptr);
    if (value) {
      stored_[name] = *value;
    } else {
      stored_.erase(name);
    }
  }
  work_out();
}

}  // namespace flotilla::gateway
