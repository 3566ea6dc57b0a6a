#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "config/plan.h"

// What a server has declared, as a file: brought about, and written out.
namespace flotilla::cli {
namespace {

struct ApplyFlags {
  ServerAccess access;
  std::string file;
  bool prune = false;
  bool dry_run = false;
  bool no_wait = false;
};

Result<config::There> ask_what_is_there(Admin& admin) {
  config::There there;
  auto declared = wait_for<api::Declared>(admin.io(), admin.client().declared());
  if (!declared) return fail(declared.error());
  auto keys = wait_for<std::vector<api::KeyShown>>(admin.io(), admin.client().keys());
  if (!keys) return fail(keys.error());
  auto settings = wait_for<std::vector<api::SettingShown>>(admin.io(), admin.client().settings());
  if (!settings) return fail(settings.error());
  there.declared = std::move(*declared);
  there.keys = std::move(*keys);
  there.settings = std::move(*settings);
  return there;
}

// Carries out one step after the other; what a step has to tell comes after its line.
class Applying {
 public:
  Applying(Admin& admin, bool wait) : admin_(admin), wait_(wait) {}

  Result<void> carry_out(const config::Step& step) {
    fmt::print("{}\n", step.line());
    std::fflush(stdout);
    action_ = step.action;
    return std::visit(*this, step.work);
  }

  Result<void> operator()(const config::SettingStep& step) {
    api::SettingChanges changes;
    changes[step.name] = step.value;
    return done(admin_.client().put_settings(std::move(changes)));
  }
  Result<void> operator()(const config::ClusterStep& step) {
    return action_ == Action::Remove ? done(admin_.client().remove_cluster(step.spec.id))
                                     : done(admin_.client().put_cluster(step.spec));
  }
  Result<void> operator()(const config::PoolStep& step) {
    if (action_ == Action::Change && step.by_reload) return reload(step);
    if (action_ != Action::Add) {
      auto gone = done(admin_.client().unload(step.from, step.pool.load.alias, false));
      if (!gone || action_ == Action::Remove) return gone;
    }
    return load(step.pool);
  }
  Result<void> operator()(const config::KeyStep& step) {
    if (action_ == Action::Remove) return done(admin_.client().remove_key(step.id));
    if (action_ == Action::Change) return done(admin_.client().change_key(step.id, step.spec));
    const auto made = wait_for<api::NewKey>(admin_.io(), admin_.client().add_key(step.spec));
    if (!made) return fail(made.error());
    fmt::print("  its secret, shown this once: {}\n", made->secret);
    return {};
  }

 private:
  using Action = config::Step::Action;

  Result<void> done(Task<void> task) { return wait_for<void>(admin_.io(), std::move(task)); }

  Result<void> load(const api::DeclaredPool& pool) {
    api::LoadSpec spec = pool.load;
    spec.wait = wait_;
    return tell(admin_.client().load(pool.cluster, std::move(spec)));
  }
  Result<void> reload(const config::PoolStep& step) {
    api::ReloadSpec spec;
    spec.alias = step.pool.load.alias;
    spec.model = step.pool.load.model;
    spec.batch = step.pool.load.batch;
    spec.force = step.pool.load.force;
    return tell(admin_.client().reload(step.from, std::move(spec)));
  }
  Result<void> tell(Task<api::LoadAnswer> task) {
    const auto answer = wait_for<api::LoadAnswer>(admin_.io(), std::move(task));
    if (!answer) return fail(answer.error());
    if (!answer->loaded) {
      fmt::print("  loading; follow it with: flotilla status --watch\n");
      return {};
    }
    fmt::print("  {} of {} replicas ready\n", answer->pool.replicas_live(),
               answer->pool.replicas.size());
    for (const api::ReplicaStatus& replica : answer->pool.replicas)
      if (!replica.live) fmt::print("  {}: {}\n", replica.node, printable(replica.last_error));
    return {};
  }

  Admin& admin_;
  const bool wait_;
  Action action_ = Action::Add;
};

std::string counts(const config::Plan& plan) {
  int added = 0;
  int changed = 0;
  int removed = 0;
  for (const config::Step& step : plan.steps) {
    added += step.action == config::Step::Action::Add ? 1 : 0;
    changed += step.action == config::Step::Action::Change ? 1 : 0;
    removed += step.action == config::Step::Action::Remove ? 1 : 0;
  }
  return fmt::format("{} to add, {} to change, {} to remove", added, changed, removed);
}

const char* environment(const char* name) { return std::getenv(name); }

Result<config::Plan> plan_of(const ApplyFlags& flags, Admin& admin) {
  const bool from_stdin = flags.file == "-";
  const auto text =
      config::read_file(from_stdin ? "/dev/stdin" : flags.file, config::kFleetLimits.bytes_max);
  if (!text) return fail(text.error());
  const auto wanted = config::read_wanted(*text, from_stdin ? "stdin" : flags.file, environment);
  if (!wanted) return fail(wanted.error());
  const auto there = ask_what_is_there(admin);
  if (!there) return fail(there.error());
  return config::make_plan(*wanted, *there, flags.prune);
}

int apply(const ApplyFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto plan = plan_of(flags, **admin);
  if (!plan) return tell_error(plan.error());
  for (const std::string& left : plan->left)
    fmt::print("leave {}: it is not in the file{}\n", left,
               flags.prune ? "" : " (--prune removes)");
  if (plan->steps.empty()) {
    fmt::print("nothing to change\n");
    return 0;
  }
  if (flags.dry_run) {
    for (const config::Step& step : plan->steps) fmt::print("{}\n", step.line());
    fmt::print("dry run: {}; nothing was done\n", counts(*plan));
    return 0;
  }
  Applying applying(**admin, !flags.no_wait);
  std::size_t done = 0;
  for (const config::Step& step : plan->steps) {
    if (const auto carried = applying.carry_out(step); !carried) {
      fmt::print(stderr, "flotilla: {}: {}\n{} of {} steps are done; apply again for the rest\n",
                 step.what, carried.error().message, done, plan->steps.size());
      return 1;
    }
    ++done;
  }
  fmt::print("done: {}\n", counts(*plan));
  return 0;
}

int write_out(const ServerAccess& access) {
  auto admin = open_admin(access);
  if (!admin) return tell_error(admin.error());
  const auto there = ask_what_is_there(**admin);
  if (!there) return tell_error(there.error());
  fmt::print("{}", config::export_text(there->declared, there->keys, there->settings));
  return 0;
}

}  // namespace

void add_apply_commands(const App& app, CommandResult& result) {
  auto flags = std::make_shared<ApplyFlags>();
  const auto applied =
      app.add_subcommand("apply",
                         "Makes a server have the clusters, pools, keys and settings "
                         "of a file; done again, it changes "
                         "nothing");
  applied.footer(
      "Examples:\n"
      "  flotilla apply -f fleet.yaml --dry-run\n"
      "  flotilla apply -f fleet.yaml --prune\n"
      "Nothing is ever removed of a section that the file does not have.");
  applied.add_option("-f,--file", flags->file, "YAML, as `flotilla export` writes it; -: stdin")
      .required();
  applied.add_flag("--prune", flags->prune, "Removes what the file's sections do not have");
  applied.add_flag("--dry-run", flags->dry_run, "Prints the steps and takes none");
  applied.add_flag("--no-wait", flags->no_wait, "Does not wait until pools are loaded");
  add_server_flags(applied, flags->access);
  applied.callback([flags, &result] { result.exit_code = apply(*flags); });

  const auto exported = app.add_subcommand(
      "export", "Prints what a server has declared as YAML for `flotilla apply`, without secrets");
  exported.footer("Example:\n  flotilla export > fleet.yaml");
  add_server_flags(exported, flags->access);
  exported.callback([flags, &result] { result.exit_code = write_out(flags->access); });
}

}  // namespace flotilla::cli
