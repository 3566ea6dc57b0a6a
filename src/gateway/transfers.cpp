#include "gateway/transfers.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "api/model_copy.h"
#include "base/log.h"
#include "gateway/gather.h"
#include "gateway/model_inventory.h"
#include "nodes/child_pipe.h"
#include "platform/process.h"

namespace flotilla::gateway {
namespace {

using State = api::TransferState;

constexpr std::size_t kKept = 50;
constexpr std::chrono::seconds kLook{30};
constexpr std::chrono::hours kHash{2};
constexpr std::chrono::minutes kSilence{2};
constexpr std::chrono::seconds kRateOver{2};
constexpr int kTries = 2;  // a part of another file is dropped and brought anew

// The program at a node's end of a copy.
Result<platform::Command> copy_command(const api::NodeSpec& node, api::CopyTask task) {
  std::vector<std::string> arguments = {"agent", "--copy", api::to_string(task)};
  if (!node.is_local()) return nodes::ssh_flotilla(ssh_target(node), arguments);
  platform::Command command;
  command.program = platform::executable_path();
  command.arguments = std::move(arguments);
  return command;
}

std::string words_of(const api::NodeSpec& node, const nodes::ChildOutput& output) {
  const std::string remedy =
      node.is_local() ? std::string() : explain_ssh(ssh_target(node), node.id, output.err);
  return output.failure() + (remedy.empty() ? "" : "; " + remedy);
}

struct Question {
  api::NodeSpec node;
  api::CopyTask task{};
  api::CopyOrder order;
  nodes::Stop* stop = nullptr;  // ends it
};

Task<api::CopyAnswer> ask(Executor executor, Question question) {
  auto command = copy_command(question.node, question.task);
  if (!command) co_return fail(command.error());
  nodes::ChildRun run;
  run.command = std::move(*command);
  run.in_text = api::to_json(question.order) + "\n";
  run.limit = question.task == api::CopyTask::Hash ? std::chrono::milliseconds(kHash) : kLook;
  run.stop = question.stop;
  const auto output = co_await nodes::run_child(executor, std::move(run));
  if (!output) co_return fail(output.error());
  if (output->out.empty()) co_return fail(Code::Unavailable, words_of(question.node, *output));
  co_return api::parse_copy_answer(output->out);
}

// Of one machine's file, where it is known within seconds.
Awaitable<std::string> hash_at(std::shared_ptr<Machine> machine, api::NodeSpec node,
                               std::string model) {
  if (!machine) co_return std::string();
  api::Preflight question;
  question.spec.model = std::move(model);
  question.spec.models_dir = node.models_dir;
  question.hash = true;
  auto answer = co_await machine->link->preflight(std::move(question), kLook);
  if (!answer) co_return std::string();
  co_return std::move(answer->hash);
}

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1LL << 30));
}

Result<void> check_nodes(const api::SyncSpec& spec, const std::vector<api::NodeSpec>& all) {
  const auto check = [&](const std::string& id, const char* param) -> Result<void> {
    const auto found = std::ranges::find(all, id, &api::NodeSpec::id);
    if (found != all.end() && found->has_agent()) return {};
    return fail(Error{
        .code = Code::NotFound,
        .message = fmt::format("cluster \"{}\" has no node \"{}\" of its own", spec.cluster, id),
        .param = param});
  };
  for (const std::string& id : spec.nodes)
    if (auto known = check(id, "nodes"); !known) return known;
  if (spec.from.empty()) return {};
  return check(spec.from, "from");
}

}  // namespace

std::chrono::seconds silence_limit(std::int64_t have) {
  constexpr std::int64_t slow_disk = std::int64_t{50} << 20;  // bytes/s
  return kSilence + std::chrono::seconds(have / slow_disk);
}

std::optional<std::size_t> oldest_ended(const std::vector<api::TransferState>& newest_first) {
  for (std::size_t i = newest_first.size(); i-- > 0;)
    if (newest_first[i] != State::Running) return i;
  return std::nullopt;
}

struct Transfers::Copy {
  explicit Copy(const Executor& executor) : stop(executor) {}
  api::Transfer shown;
  std::vector<api::CopyFile> files;
  api::NodeSpec source;
  std::vector<api::NodeSpec> targets;  // as shown.nodes
  std::map<std::string, std::string>
      hashes;  // of the source's files, as far as they were asked for
  nodes::Stop stop;
  Instant began;
};

// One node's part of a copy.
class Transfers::Delivery {
 public:
  Delivery(Transfers& transfers, std::shared_ptr<Copy> copy, std::size_t index)
      : transfers_(transfers), copy_(std::move(copy)), index_(index) {}

  // Until all files are there.
  Task<void> run() {
    for (int attempt = 1;; ++attempt) {
      auto tried = co_await bring_all();
      const bool again = !tried && tried.error().code == Code::Conflict && attempt < kTries;
      if (!again || copy_->stop.asked()) co_return tried;
    }
  }

 private:
  api::TransferNode& shown() { return copy_->shown.nodes[index_]; }
  const api::NodeSpec& target() const { return copy_->targets[index_]; }
  Task<void> bring_all();
  Task<bool> is_same(std::string path);
  Task<std::string> hash_of(const api::NodeSpec& node, std::string path);
  Task<void> bring(api::CopyFile file);
  void count(std::int64_t done);

  Transfers& transfers_;
  std::shared_ptr<Copy> copy_;
  const std::size_t index_;
  std::int64_t before_ = 0;  // bytes of the files that are done
  std::int64_t mark_bytes_ = 0;
  Instant mark_at_{};
};

Task<void> Transfers::Delivery::bring_all() {
  Question question{.node = target(), .task = api::CopyTask::Look, .order = {}};
  question.order.models_dir = target().models_dir;
  question.order.files = copy_->files;
  question.stop = &copy_->stop;
  auto looked = co_await ask(transfers_.executor_, std::move(question));
  if (!looked) co_return fail(looked.error());
  std::int64_t have = 0;
  std::int64_t missing = 0;
  for (api::CopyFile& file : looked->files) {
    if (file.whole) {
      const auto same = co_await is_same(file.path);
      if (!same) co_return fail(same.error());
      file.whole = *same;
    }
    const std::int64_t there = file.whole ? file.bytes : file.have;
    have += there;
    missing += file.bytes - there;
  }
  shown().total_bytes = have + missing;
  shown().resumed_bytes = have;
  if (missing > looked->free_bytes) {
    co_return fail(Code::Unprocessable,
                   fmt::format("{} are missing there and {} of its disk are free; make room in {}",
                               gib(missing), gib(looked->free_bytes), target().models_dir));
  }
  before_ = 0;
  mark_at_ = transfers_.clock_.now();
  mark_bytes_ = have;
  shown().done_bytes = have;
  for (const api::CopyFile& file : looked->files) {
    if (!file.whole) {
      shown().file = file.path;
      auto brought = co_await bring(file);
      if (!brought) co_return brought;
    }
    before_ += file.bytes;
    count(0);
  }
  co_return Result<void>{};
}

// A file of the right size is there: is it the one.
Task<bool> Transfers::Delivery::is_same(std::string path) {
  const auto theirs = co_await hash_of(target(), path);
  if (!theirs) co_return fail(theirs.error());
  if (!copy_->hashes.contains(path)) {
    const auto ours = co_await hash_of(copy_->source, path);
    if (!ours) co_return fail(ours.error());
    copy_->hashes[path] = *ours;
  }
  co_return copy_->hashes[path] == *theirs;
}

Task<std::string> Transfers::Delivery::hash_of(const api::NodeSpec& node, std::string path) {
  Question question{.node = node, .task = api::CopyTask::Hash, .order = {}};
  question.order.models_dir = node.models_dir;
  question.order.path = std::move(path);
  question.stop = &copy_->stop;
  const auto answer = co_await ask(transfers_.executor_, std::move(question));
  if (!answer) co_return fail(answer.error());
  co_return answer->hash;
}

Task<void> Transfers::Delivery::bring(api::CopyFile file) {
  api::CopyOrder there;
  there.models_dir = target().models_dir;
  there.path = file.path;
  there.bytes = file.bytes;
  there.offset = file.have;
  api::CopyOrder here = there;
  here.models_dir = copy_->source.models_dir;
  here.to = api::to_json(there);
  auto from = copy_command(copy_->source, api::CopyTask::Send);
  auto to = copy_command(target(), api::CopyTask::Receive);
  if (!from || !to) co_return fail(from ? to.error() : from.error());

  const std::chrono::seconds silence = silence_limit(file.have);
  std::optional<Error> refused;
  bool done = false;
  nodes::ChildPipe pipe;
  pipe.from = std::move(*from);
  pipe.from_text = api::to_json(here) + "\n";
  pipe.to = std::move(*to);
  pipe.silence = silence;
  pipe.stop = &copy_->stop;
  pipe.on_line = [this, &refused, &done](const std::string& line) {
    const auto said = api::parse_copy_answer(line);
    if (!said) refused = said.error();
    done = said && said->done;
    if (said && !said->done) count(said->have);
  };
  const auto end = co_await nodes::run_pipe(transfers_.executor_, std::move(pipe));
  if (!end) co_return fail(end.error());
  if (done) co_return Result<void>{};
  if (copy_->stop.asked()) co_return fail(Code::Cancelled, "cancelled");
  if (!end->whole)
    co_return fail(Code::Unavailable, fmt::format("nothing came for {} s; what came is kept, and "
                                                  "the next sync goes on from there",
                                                  silence.count()));
  // What ails the source says more than that the receiver was left waiting.
  if (!end->from.ok() && end->from.status.exit_code && !end->from.err.empty() &&
      end->to.err.empty())
    co_return fail(Code::Unavailable, fmt::format("node {}: {}", copy_->source.id,
                                                  words_of(copy_->source, end->from)));
  if (refused) co_return fail(Code::Conflict, refused->message);
  co_return fail(Code::Unavailable, words_of(target(), end->to));
}

void Transfers::Delivery::count(std::int64_t done) {
  api::TransferNode& node = shown();
  node.done_bytes = before_ + done;
  const Instant now = transfers_.clock_.now();
  const double passed_s = to_s(now - mark_at_);
  if (passed_s < to_s(kRateOver) && node.bytes_per_s > 0) return;
  if (passed_s <= 0) return;
  node.bytes_per_s = std::max(0.0, static_cast<double>(node.done_bytes - mark_bytes_) / passed_s);
  if (passed_s < to_s(kRateOver)) return;
  mark_at_ = now;
  mark_bytes_ = node.done_bytes;
}

Transfers::Transfers(Executor executor, const Clock& clock, Control& control)
    : executor_(std::move(executor)), clock_(clock), control_(control) {}
Transfers::~Transfers() = default;

Awaitable<void> Transfers::deliver(std::shared_ptr<Copy> copy, std::size_t index) {
  api::TransferNode& node = copy->shown.nodes[index];
  node.state = State::Running;
  Delivery delivery(*this, copy, index);
  const auto brought = co_await delivery.run();
  node.file.clear();
  node.bytes_per_s = 0;
  if (brought) {
    node.done_bytes = node.total_bytes;
    node.state = State::Done;
  } else {
    node.state = copy->stop.asked() ? State::Cancelled : State::Failed;
    node.error = copy->stop.asked() ? "" : brought.error().message;
    log::warning("copy of {} to node {}: {}", copy->shown.model, node.node,
                 brought.error().message);
  }
  copy->shown.took_s = to_s(clock_.now() - copy->began);
}

// Who has the file, and from whom it is copied.
Task<Transfers::Found> Transfers::find_file(api::SyncSpec spec) {
  const api::ClusterSpec* cluster = control_.find_cluster(spec.cluster);
  if (cluster == nullptr)
    co_return fail(Error{.code = Code::NotFound,
                         .message = fmt::format("there is no cluster \"{}\"", spec.cluster),
                         .param = "cluster"});
  Found found;
  found.nodes = control_.nodes_of(*cluster);
  if (auto known = check_nodes(spec, found.nodes); !known) co_return fail(known.error());
  const auto models = co_await models_in(control_, executor_, *cluster);
  const auto merged = api::merge_models(models.nodes);
  const auto model = std::ranges::find(merged, spec.model,
                                       [](const api::FoundModel& one) { return one.file.path; });
  if (model == merged.end())
    co_return fail(Error{.code = Code::NotFound,
                         .message = fmt::format("no node of cluster \"{}\" has \"{}\" in its "
                                                "models folder; `flotilla model list {}` names "
                                                "those that are there",
                                                spec.cluster, spec.model, spec.cluster),
                         .param = "model"});
  if (model->file.folder)
    co_return fail(Code::Unprocessable,
                   fmt::format("\"{0}\" is a model folder (config.json and *.safetensors); only "
                               ".gguf files are copied. Bring it there yourself, for instance with "
                               "rsync -a {0} HOST:FOLDER",
                               spec.model));
  found.holders = holders_of(spec, models.nodes, found.nodes);
  if (needs_hashes(found.holders)) co_await learn_hashes(found, spec.model);
  const auto source = choose_source(found.holders, spec);
  if (!source) co_return fail(source.error());
  found.source = *source;
  co_return found;
}

// Files of one name and size may differ. Nodes that share a folder are asked once.
Awaitable<void> Transfers::learn_hashes(Found& found, std::string model) {
  std::map<Place, std::size_t> asked;
  std::vector<Awaitable<std::string>> works;
  for (const Holder& holder : found.holders) {
    if (!asked.try_emplace(place_of(holder.node), works.size()).second) continue;
    works.push_back(hash_at(control_.nodes().find_machine(holder.node), holder.node, model));
  }
  const auto hashes = co_await gather(executor_, std::move(works));
  for (Holder& holder : found.holders) holder.hash = hashes[asked.at(place_of(holder.node))];
}

// To which nodes it goes; what lies in one folder is one. Where no nodes are named, a node that
// could not be asked is one that may lack it: it gets the file, or fails with its reason.
void Transfers::plan(Copy& copy, const api::SyncSpec& spec, const Found& found) {
  copy.source = found.source.node;
  std::set<Place> places = {place_of(copy.source)};
  for (const api::NodeSpec& node : found.nodes) {
    const auto is_it = [&](const Holder& holder) { return holder.node.id == node.id; };
    const bool named = std::ranges::find(spec.nodes, node.id) != spec.nodes.end();
    const bool lacks = node.has_agent() && std::ranges::none_of(found.holders, is_it);
    if (!(spec.nodes.empty() ? lacks : named)) continue;
    if (!places.insert(place_of(node)).second) continue;
    api::TransferNode& shown = copy.shown.nodes.emplace_back();
    shown.node = node.id;
    shown.total_bytes = found.source.bytes;
    copy.targets.push_back(node);
  }
  copy.shown.cluster = spec.cluster;
  copy.shown.model = spec.model;
  copy.shown.source = copy.source.id;
  copy.shown.total_bytes = found.source.bytes;
}

Result<void> Transfers::check_free(const api::SyncSpec& spec) const {
  for (const auto& other : copies_) {
    const api::Transfer& shown = other->shown;
    if (shown.state() == State::Running && shown.cluster == spec.cluster &&
        shown.model == spec.model)
      return fail(Code::Conflict,
                  fmt::format("\"{}\" is being copied already: transfer {}", spec.model, shown.id));
  }
  return {};
}

Task<api::Transfer> Transfers::begin(api::SyncSpec spec) {
  // So that a name with a leading dash can be given to a command: as ./-name.
  spec.model = std::filesystem::path(spec.model).lexically_normal().string();
  const auto found = co_await find_file(spec);
  if (!found) co_return fail(found.error());
  const auto copy = std::make_shared<Copy>(executor_);
  plan(*copy, spec, *found);
  if (spec.nodes.empty() && copy->targets.empty()) {
    const auto others = check_others(found->holders, found->source);
    if (!others) co_return fail(others.error());
  }
  Question question{.node = copy->source, .task = api::CopyTask::List, .order = {}};
  question.order.models_dir = copy->source.models_dir;
  question.order.model = spec.model;
  const auto listed = co_await ask(executor_, std::move(question));
  if (!listed)
    co_return fail(listed.error().code,
                   fmt::format("node {}: {}", copy->source.id, listed.error().message));
  if (auto free = check_free(spec); !free) co_return fail(free.error());
  copy->files = listed->files;
  copy->began = clock_.now();
  api::Transfer& shown = copy->shown;
  shown.id = fmt::format("t{}", next_++);
  shown.began_unix_ms = clock_.unix_ms();
  remember(copy);
  for (std::size_t i = 0; i < shown.nodes.size(); ++i)
    boost::asio::co_spawn(executor_, deliver(copy, i), boost::asio::detached);
  co_return shown;
}

void Transfers::remember(std::shared_ptr<Copy> copy) {
  copies_.push_front(std::move(copy));
  while (copies_.size() > kKept) {
    std::vector<State> states;
    for (const auto& one : copies_) states.push_back(one->shown.state());
    const auto old = oldest_ended(states);
    if (!old) break;
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(*old));
  }
}

std::shared_ptr<Transfers::Copy> Transfers::find_copy(const std::string& id) const {
  for (const auto& copy : copies_)
    if (copy->shown.id == id) return copy;
  return nullptr;
}

Result<api::Transfer> Transfers::find(const std::string& id) const {
  const auto copy = find_copy(id);
  if (!copy)
    return fail(
        Code::NotFound,
        fmt::format("there is no transfer \"{}\": those under way and the last {} are known", id,
                    kKept));
  return copy->shown;
}

Result<api::Transfer> Transfers::cancel(const std::string& id) {
  const auto copy = find_copy(id);
  if (!copy) return find(id);
  if (copy->shown.state() != State::Running)
    return fail(Code::Conflict, fmt::format("transfer {} has ended already", id));
  copy->stop.ask();
  return copy->shown;
}

std::vector<api::Transfer> Transfers::list() const {
  std::vector<api::Transfer> out;
  for (const auto& copy : copies_) out.push_back(copy->shown);
  return out;
}

bool Transfers::running() const {
  return std::ranges::any_of(
      copies_, [](const auto& copy) { return copy->shown.state() == State::Running; });
}

}  // namespace flotilla::gateway
