#include "gateway/control.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "gateway/under_way.h"

// Clusters: what is declared, kept and brought back. Pools are in control_pools.cpp and
// control_reload.cpp.
namespace flotilla::gateway {
namespace {

constexpr std::size_t kEventsWaitingMax = 1000;
constexpr std::chrono::milliseconds kNamesAgain{200};

std::string cluster_key(const std::string& id) { return "cluster " + id; }

}  // namespace

Control::Control(Options options, store::Store store)
    : options_(std::move(options)),
      store_(std::move(store)),
      fleet_(options_),
      names_(options_.executor,
             [this] {
               if (std::exchange(following_names_, true)) return;
               boost::asio::co_spawn(options_.executor, follow_names(), boost::asio::detached);
             }),
      changed_(options_.executor, boost::asio::steady_timer::time_point::max()) {
  fleet_.on_change([this] {
    ++changes_;
    changed_.cancel();
  });
}

void Control::restore() {
  const auto clusters = store_.clusters();
  const auto pools = store_.pools();
  fleet_.start();
  if (!clusters || !pools) {
    const Error& error = clusters ? pools.error() : clusters.error();
    log::error("{}; nothing is brought back", error.message);
    return;
  }
  for (const auto& stored : *clusters) {
    if (auto spec = api::parse_cluster(stored.body, stored.id)) {
      clusters_[stored.id] = std::move(*spec);
    } else {
      log::error("cluster {} in the store: {}", stored.id, spec.error().message);
    }
  }
  declare_nodes();
  for (const auto& stored : *pools) {
    const auto load = api::parse_load(stored.body);
    if (!load) log::error("pool {} in the store: {}", stored.alias, load.error().message);
    const auto cluster = clusters_.find(stored.cluster);
    if (!load || cluster == clusters_.end() || !cluster->second.reload_on_restart) continue;
    log::info("bringing back pool {} on cluster {}", stored.alias, stored.cluster);
    make_pool(cluster->second,
              {.load = *load, .number = stored.generation, .width = pool_width(*load)});
  }
}

Awaitable<void> Control::close(nodes::NodeLink::Runners runners) { co_await fleet_.close(runners); }

std::vector<api::ClusterSpec> Control::clusters() const {
  std::vector<api::ClusterSpec> out;
  for (const auto& [id, spec] : clusters_) out.push_back(spec);
  return out;
}

const api::ClusterSpec* Control::find_cluster(const std::string& id) const {
  const auto found = clusters_.find(id);
  return found == clusters_.end() ? nullptr : &found->second;
}

Result<void> Control::check_idle(const std::string& cluster, const std::string& key) const {
  for (const std::string& one : {key, cluster_key(cluster)}) {
    const auto busy = under_way_.find(one);
    if (busy == under_way_.end()) continue;
    return fail(Error{.code = Code::Conflict,
                      .message = fmt::format("{}{} is being {}; try again when that is done",
                                             one == key ? "pool " : "", one, busy->second.what),
                      .reason = "under_way"});
  }
  return {};
}

Result<void> Control::check_cluster_idle(const std::string& cluster) const {
  for (const auto& [key, work] : under_way_) {
    if (work.cluster != cluster) continue;
    return fail(
        Error{.code = Code::Conflict,
              .message = fmt::format("{}{} is being {}; try again when that is done",
                                     key == cluster_key(cluster) ? "" : "pool ", key, work.what),
              .reason = "under_way"});
  }
  return {};
}

Result<void> Control::check_nodes(const api::ClusterSpec& spec) const {
  for (const auto& [id, other] : clusters_) {
    if (id == spec.id) continue;
    for (const api::NodeSpec& node : other.nodes) {
      const auto same = std::ranges::find(spec.nodes, node.id, &api::NodeSpec::id);
      if (same == spec.nodes.end() || *same == node) continue;
      return fail(Code::Conflict,
                  fmt::format("node id \"{}\" is another connection in cluster {}; a node's id is "
                              "the same connection everywhere, so choose another id",
                              node.id, id));
    }
  }
  return {};
}

Task<api::ClusterSpec> Control::put_cluster(api::ClusterSpec spec) {
  if (auto may = check_nodes(spec); !may) co_return fail(may.error());
  if (auto idle = check_cluster_idle(spec.id); !idle) co_return fail(idle.error());
  Work work{.cluster = spec.id, .what = "edited"};
  const UnderWay mark(under_way_, cluster_key(spec.id), std::move(work));
  // A key is never shown, so an edit that leaves it out means: as it was.
  if (const api::ClusterSpec* known = find_cluster(spec.id)) {
    for (api::NodeSpec& node : spec.nodes) {
      const auto same = std::ranges::find(known->nodes, node.id, &api::NodeSpec::id);
      if (same != known->nodes.end() && node.api_key.empty() && same->url == node.url)
        node.api_key = same->api_key;
    }
  }
  store::StoredCluster stored{.id = spec.id, .body = api::to_json(spec, api::Secrets::Kept)};
  auto write = [this, stored] { return store_.put_cluster(stored); };
  const auto written = co_await on_disk(std::move(write));
  if (!written) co_return fail(written.error());
  clusters_[spec.id] = spec;
  ++changes_;
  declare_nodes();
  co_await names_.settle();
  apply_nodes(spec);
  co_return spec;
}

std::vector<api::NodeSpec> Control::nodes_of(const api::ClusterSpec& cluster) const {
  std::vector<api::NodeSpec> nodes = expand_nodes(
      cluster.nodes, [this](const std::string& name) { return names_.addresses(name); });
  for (api::NodeSpec& node : nodes)
    if (node.models_dir.empty()) node.models_dir = cluster.models_dir;
  return nodes;
}

void Control::declare_nodes() {
  std::vector<api::NodeSpec> all;
  for (const auto& [id, cluster] : clusters_)
    all.insert(all.end(), cluster.nodes.begin(), cluster.nodes.end());
  fleet_.declare(all);
  std::set<std::string> names;
  for (const api::NodeSpec& node : all)
    if (std::string name = name_in_url(node); !name.empty()) names.insert(std::move(name));
  names_.declare(std::move(names));
}

// A name has other addresses: their nodes come and go. Not in the middle of a load or a reload.
Awaitable<void> Control::follow_names() {
  boost::asio::steady_timer timer(options_.executor);
  std::set<std::string> left;
  for (const auto& [id, cluster] : clusters_) left.insert(id);
  following_names_ = false;  // what changes from here on is another change
  while (!left.empty()) {
    std::erase_if(left, [this](const std::string& id) {
      if (!check_cluster_idle(id)) return false;
      if (const api::ClusterSpec* cluster = find_cluster(id)) apply_nodes(*cluster);
      return true;
    });
    if (left.empty()) break;
    timer.expires_after(kNamesAgain);
    co_await timer.async_wait(kAwait);
  }
  ++changes_;
  changed_.cancel();
}

void Control::apply_nodes(const api::ClusterSpec& spec) {
  const std::vector<api::NodeSpec> nodes = nodes_of(spec);
  const PoolRuntime::LinkOf link_of = [this](const api::NodeSpec& node) {
    return fleet_.link_of(node);
  };
  for (const auto& pool : std::vector(fleet_.pools()))
    if (pool->options().cluster == spec.id) pool->follow(nodes, link_of);
}

Task<void> Control::delete_cluster(std::string id) {
  if (find_cluster(id) == nullptr)
    co_return fail(Code::NotFound, fmt::format("there is no cluster \"{}\"", id));
  for (const auto& pool : fleet_.pools()) {
    if (pool->options().cluster == id) {
      co_return fail(Code::Conflict, fmt::format("cluster {} has pool {} loaded; unload it first",
                                                 id, pool->alias()));
    }
  }
  if (auto idle = check_cluster_idle(id); !idle) co_return fail(idle.error());
  Work work{.cluster = id, .what = "removed"};
  const UnderWay mark(under_way_, cluster_key(id), std::move(work));
  auto erase = [this, id] { return store_.delete_cluster(id); };
  const auto deleted = co_await on_disk(std::move(erase));
  if (!deleted) co_return fail(deleted.error());
  clusters_.erase(id);
  ++changes_;
  declare_nodes();
  co_return Result<void>{};
}

std::shared_ptr<PoolRuntime> Control::find_pool(const std::string& alias) const {
  const auto found = std::ranges::find(fleet_.pools(), alias, &PoolRuntime::alias);
  return found == fleet_.pools().end() ? nullptr : *found;
}

std::shared_ptr<PoolRuntime> Control::find_pool_for(const std::string& model) const {
  if (auto pool = find_pool(model)) return pool;
  std::shared_ptr<PoolRuntime> fallback;
  for (const auto& pool : fleet_.pools()) {
    const auto& load = pool->generation().load;
    if (std::ranges::find(load.aliases, model) != load.aliases.end()) return pool;
    if (load.is_default) fallback = pool;
  }
  return fallback;
}

Task<void> Control::store_settings(std::map<std::string, std::optional<std::string>> changes) {
  auto write = [this, changes = std::move(changes)] { return store_.put_settings(changes); };
  co_return co_await on_disk(std::move(write));
}

void Control::apply_settings() {
  for (const auto& pool : std::vector(fleet_.pools()))
    pool->configure(pool_settings(pool->generation().load));
  ++changes_;
}

Task<void> Control::store_key(store::StoredKey key) {
  auto write = [this, key = std::move(key)] { return store_.put_key(key); };
  co_return co_await on_disk(std::move(write));
}

Task<void> Control::change_key(store::StoredKey key) {
  auto write = [this, key = std::move(key)] { return store_.change_key(key); };
  co_return co_await on_disk(std::move(write));
}

Task<void> Control::delete_key(std::string id) {
  auto erase = [this, id = std::move(id)] { return store_.delete_key(id); };
  co_return co_await on_disk(std::move(erase));
}

Task<void> Control::store_usage(std::vector<store::StoredUsage> more) {
  auto write = [this, more = std::move(more)] { return store_.add_usage(more); };
  co_return co_await on_disk(std::move(write));
}

Task<std::vector<store::StoredUsage>> Control::usage(api::UsageBy by) {
  auto read = [this, by] {
    return by == api::UsageBy::Key ? store_.usage_by_key() : store_.usage_by_day();
  };
  co_return co_await on_disk(std::move(read));
}

Task<std::vector<store::StoredEvent>> Control::events(int most) {
  auto read = [this, most] { return store_.events(most); };
  co_return co_await on_disk(std::move(read));
}

void Control::note_event(store::StoredEvent event) {
  if (events_waiting_ >= kEventsWaitingMax) {
    log::error("the disk is behind; not in the audit: {} by {}: {}", event.action, event.who,
               event.status);
    return;
  }
  ++events_waiting_;
  boost::asio::co_spawn(options_.executor, write_event(std::move(event)), boost::asio::detached);
}

Awaitable<void> Control::write_event(store::StoredEvent event) {
  auto write = [this, event = std::move(event)] { return store_.add_event(event); };
  const auto written = co_await on_disk(std::move(write));
  --events_waiting_;
  ++events_noted_;
  if (!written) log::error("{}", written.error().message);
}

std::uint64_t Control::version() const {
  std::uint64_t sum = changes_;
  for (const auto& pool : fleet_.pools()) sum += pool->brain().version() + 1;
  return sum;
}

}  // namespace flotilla::gateway
