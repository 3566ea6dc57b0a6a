#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/operations.h"
#include "config/wanted.h"

// From what a server has to what a file wants.
namespace flotilla::config {

struct There {
  api::Declared declared;
  std::vector<api::KeyShown> keys;
  std::vector<api::SettingShown> settings;
};

struct SettingStep {
  std::string name;
  std::optional<double> value;  // none: what is stored is taken back
};
struct ClusterStep {
  api::ClusterSpec spec;
};
struct PoolStep {
  api::DeclaredPool pool;
  std::string from;        // a change or removal: the cluster that it is on
  bool by_reload = false;  // a change that costs no request; else unloaded and loaded
};
struct KeyStep {
  std::string id;  // a change or removal
  api::KeySpec spec;
};

struct Step {
  enum class Action { Add, Change, Remove };
  Action action = Action::Add;
  std::string what;     // "pool smollm2"
  std::string details;  // "batch: false -> true"; may be empty
  std::variant<SettingStep, ClusterStep, PoolStep, KeyStep> work;

  std::string line() const;  // "change pool smollm2 (batch: false -> true)"
};

struct Plan {
  std::vector<Step> steps;        // in their order
  std::vector<std::string> left;  // what is there, not in the file, and stays: "key old"
};

// Nothing is removed without `prune`, and never of a section that the file does not have. The error
// is what no step could do: a pool on a cluster that is nowhere, a setting that is unknown, out of
// range or pinned.
Result<Plan> make_plan(const Wanted& wanted, const There& there, bool prune);

}  // namespace flotilla::config
