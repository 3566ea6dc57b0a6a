#include "nodes/host_keys.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "nodes/child_run.h"
#include "platform/process.h"

namespace flotilla::nodes {
namespace {

constexpr std::chrono::seconds kLimit{20};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

std::string word(const std::string& line, int number) {
  std::istringstream in(line);
  std::string out;
  for (int i = 0; i <= number; ++i)
    if (!(in >> out)) return {};
  return out;
}

// ssh-keygen, whose stdout is wanted whatever its exit code.
Task<ChildOutput> ask(Executor executor, std::vector<std::string> arguments) {
  ChildRun run{.command = {}, .limit = kLimit};
  run.command.program = "ssh-keygen";
  run.command.arguments = std::move(arguments);
  co_return co_await run_child(std::move(executor), std::move(run));
}

ChildRun append_to(const std::string& file) {
  ChildRun append{.command = {}, .limit = kLimit};
  append.command.program = "tee";
  append.command.arguments = {"-a", "--", file};
  return append;
}

// A last line that was written by hand may have no end, and would take a key into itself.
Task<void> end_last_line(Executor executor, std::string file) {
  ChildRun look{.command = {}, .limit = kLimit};
  look.command.program = "tail";
  look.command.arguments = {"-c", "1", "--", file};
  const auto last = co_await run_child(executor, std::move(look));
  if (!last) co_return fail(last.error());
  if (last->out.empty() || last->out == "\n") co_return Result<void>{};
  ChildRun line_end = append_to(file);
  line_end.in_text = "\n";
  const auto ended = co_await run_child(executor, std::move(line_end));
  if (!ended) co_return fail(ended.error());
  co_return Result<void>{};
}

// What lies in the scratch directory while one question is answered.
struct Scratch {
  explicit Scratch(const std::filesystem::path& folder) {
    static std::uint64_t number = 0;
    file = folder / fmt::format("hosts-{}-{}", platform::own_pid(), ++number);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
  std::filesystem::path file;
};

// The first known_hosts file of the user's config.
Task<std::string> known_hosts_file(Executor executor, SshTarget target) {
  auto command = ssh_options_shown(target);
  if (!command) co_return fail(command.error());
  ChildRun run{.command = std::move(*command), .limit = kLimit};
  const auto shown = co_await run_child(executor, std::move(run));
  if (!shown) co_return fail(shown.error());
  for (const std::string& line : lines_of(shown->out)) {
    if (word(line, 0) != "userknownhostsfile") continue;
    std::string file = word(line, 1);
    const char* home = std::getenv("HOME");
    if (file.starts_with("~/") && home != nullptr) file = home + file.substr(1);
    co_return file;
  }
  co_return fail(Code::Unavailable,
                 "ssh does not say where its known_hosts is: " + shown->failure());
}

// Lets ssh meet the machine with an empty known_hosts in `scratch`: it writes what it is shown.
Task<HostKeys> meet(Executor executor, SshTarget target, std::filesystem::path scratch) {
  auto command = ssh_key_exchange(target, scratch);
  if (!command) co_return fail(command.error());
  ChildRun run{.command = std::move(*command), .limit = kLimit};
  const auto met = co_await run_child(executor, std::move(run));
  if (!met) co_return fail(met.error());
  std::vector<std::string> list{"-l", "-f", scratch};
  const auto listed = co_await ask(executor, std::move(list));
  if (!listed) co_return fail(listed.error());
  HostKeys keys;
  for (const std::string& line : lines_of(listed->out)) {
    keys.name = word(line, 2);
    keys.fingerprints.push_back(word(line, 1) + " " + word(line, 3));
  }
  if (keys.fingerprints.empty())
    co_return fail(Code::Unavailable,
                   fmt::format("{} shows no host key: {}; {}", target.shown(), met->failure(),
                               explain_ssh(target, target.host, met->err)));
  auto file = co_await known_hosts_file(executor, target);
  if (!file) co_return fail(file.error());
  keys.file = std::move(*file);
  std::vector<std::string> find{"-l", "-F", keys.name, "-f", keys.file};
  const auto stored = co_await ask(executor, std::move(find));
  if (!stored) co_return fail(stored.error());
  for (const std::string& line : lines_of(stored->out)) {
    const bool same = std::ranges::any_of(keys.fingerprints, [&](const std::string& shown) {
      return line.find(word(shown, 0)) != std::string::npos;
    });
    keys.known = keys.known || same;
    keys.changed = true;
  }
  keys.changed = keys.changed && !keys.known;
  co_return keys;
}

}  // namespace

Task<HostKeys> look_at_host_keys(Executor executor, SshTarget target,
                                 std::filesystem::path scratch) {
  const Scratch mine(scratch);
  co_return co_await meet(std::move(executor), std::move(target), mine.file);
}

Task<HostKeys> store_host_keys(Executor executor, SshTarget target, std::filesystem::path scratch,
                               std::string fingerprint) {
  const Scratch mine(scratch);
  auto keys = co_await meet(executor, target, mine.file);
  if (!keys) co_return keys;
  const bool same = std::ranges::any_of(
      keys->fingerprints, [&](const std::string& shown) { return word(shown, 0) == fingerprint; });
  if (!same)
    co_return fail(Code::Conflict,
                   fmt::format("{} shows {}, not {}; nothing was stored", target.shown(),
                               keys->fingerprints.front(), fingerprint));
  if (keys->known) co_return keys;
  std::error_code ignored;
  const std::filesystem::path file = keys->file;
  std::filesystem::create_directories(file.parent_path(), ignored);
  if (keys->changed) {
    std::vector<std::string> remove{"-R", keys->name, "-f", keys->file};
    const auto removed = co_await ask(executor, std::move(remove));
    if (!removed) co_return fail(removed.error());
    if (!removed->ok())
      co_return fail(Code::Unavailable, fmt::format("the old key cannot be taken out of {}: {}",
                                                    keys->file, removed->failure()));
  }
  const auto whole = co_await end_last_line(executor, keys->file);
  if (!whole) co_return fail(whole.error());
  ChildRun append = append_to(keys->file);
  append.command.in_file = mine.file;
  const auto stored = co_await run_child(executor, std::move(append));
  if (!stored) co_return fail(stored.error());
  if (!stored->ok())
    co_return fail(Code::Unavailable,
                   fmt::format("{} cannot be written: {}", keys->file, stored->failure()));
  keys->known = true;
  keys->changed = false;
  co_return keys;
}

}  // namespace flotilla::nodes
