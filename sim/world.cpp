#include "sim/world.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace flotilla::sim {

using namespace cluster;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
constexpr std::size_t kTrace = 400;
constexpr Duration kLinkSilence = seconds(15);
constexpr Duration kAgentGrace = seconds(60);
unsigned number(ReplicaIndex index) { return static_cast<unsigned>(index); }
unsigned long number(TicketId id) { return static_cast<unsigned long>(id); }
}  // namespace

void World::remember(const std::string& line) {
  trace_.push_back(fmt::format("{:10.3f} {}", to_s(agenda_.now().time_since_epoch()) - 3600, line));
  if (trace_.size() > kTrace) trace_.pop_front();
}

World::World(const Scenario& scenario, Agenda& agenda, Random& random)
    : scenario_(scenario),
      agenda_(agenda),
      random_(random),
      pool_random_(random.next()),
      checkers_(scenario),
      pool_(Alias("m"), scenario.settings, pool_random_) {
  for (int i = 0; i < scenario.nodes; ++i) add_node();
}

ReplicaInfo World::info() const {
  return {.width = scenario_.width, .numerics = "fake", .exact_resume = true};
}

// actions

void World::arm() {
  const Instant due = pool_.next_deadline();
  if (due >= armed_) return;
  armed_ = due;
  agenda_.at(due, [this, due] {
    if (armed_ != due) return;
    armed_ = Instant::max();
    pool_.tick(agenda_.now());
    act();
  });
}

void World::act() {
  for (Action& action : pool_.take_actions()) {
    if (const auto* start = std::get_if<StartReplica>(&action)) {
      note("start replica {} launch {}", number(start->launch.replica), start->launch.number);
      checkers_.on_start(*start, agenda_.now());
      this->start(*start);
    } else if (const auto* stop = std::get_if<StopReplica>(&action)) {
      note("stop replica {} launch {}", number(stop->launch.replica), stop->launch.number);
      checkers_.on_stop(stop->launch, agenda_.now());
      this->stop(stop->launch);
    } else if (const auto* drop = std::get_if<DropReplica>(&action)) {
      note("drop replica {} launch {} with {}: {}", number(drop->launch.replica),
           drop->launch.number, drop->tickets.size(), drop->reason);
      checkers_.on_drop(*drop, agenda_.now());
      for (const TicketId id : drop->tickets) {
        const auto found = requests_.find(id);
        if (found == requests_.end()) continue;
        agenda_.in(jitter(5), [this, id, attempt = found->second.attempt] { fail(id, attempt); });
        if (const auto runner =
                nodes_[members_[number(drop->launch.replica)].node]->find(drop->launch.replica)) {
          runner->remove(id);
        }
      }
    } else if (const auto* dispatch = std::get_if<Dispatch>(&action)) {
      const auto found = requests_.find(dispatch->ticket);
      const bool again = found != requests_.end() && found->second.attempt > 0;
      send(dispatch->ticket, dispatch->launch, again);
    } else if (const auto* refuse = std::get_if<Refuse>(&action)) {
      note("refuse ticket {}: {}", number(refuse->ticket), refuse->error.reason);
      checkers_.on_refused(refuse->ticket, refuse->error, true, agenda_.now());
      requests_.erase(refuse->ticket);
    }
  }
  arm();
}

void World::over_link(std::size_t node, Duration delay, Agenda::Deed deed) {
  agenda_.in(delay, [this, node, cuts = nodes_[node]->cuts, deed = std::move(deed)] {
    const FakeNode& it = *nodes_[node];
    if (it.link) {
      deed();
    } else if (!it.told_away && cuts <= it.cuts) {
      over_link(node, milliseconds(500), deed);
    }
  });
}

// replicas

void World::add_node() {
  const std::size_t index = nodes_.size();
  nodes_.push_back(std::make_unique<FakeNode>());
  nodes_[index]->id = NodeId(fmt::format("n{}", index));
  add_replica(index, generation_);
}

void World::add_replica(std::size_t node, Generation generation) {
  const Link link = nodes_[node]->told_away ? Link::Away : Link::Up;
  const ReplicaIndex index = pool_.add_replica(nodes_[node]->id, generation, link, agenda_.now());
  if (number(index) > members_.size()) checkers_.breaks("replicas are not numbered in order");
  if (number(index) >= members_.size()) members_.resize(number(index) + 1);
  Member& member = members_[number(index)];
  member = {
      .node = node, .generation = generation, .launch = member.launch, .before = member.launch};
  checkers_.on_added(index, generation);
  checkers_.on_node(index, link == Link::Up, agenda_.now());
  act();
}

void World::start(const StartReplica& start) {
  const std::size_t at = members_[number(start.launch.replica)].node;
  members_[number(start.launch.replica)].launch = start.launch.number;
  over_link(at, jitter(20), [this, at, launch = start.launch] {
    if (members_[number(launch.replica)].launch != launch.number) return;
    FakeNode& node = *nodes_[at];
    std::erase_if(node.runners, [&](auto& entry) {
      if (entry.first != launch.replica) return false;
      entry.second->dead = true;
      return true;
    });
    auto runner =
        std::make_shared<FakeRunner>(agenda_, *this, launch, static_cast<int>(at), scenario_.width);
    node.runners.emplace_back(launch.replica, runner);
    load(runner, at, 0);
  });
}

void World::load(const std::shared_ptr<FakeRunner>& runner, std::size_t node, int part) {
  constexpr int kParts = 4;
  FakeNode& at = *nodes_[node];
  if (part == 1 && at.load_failures > 0) {
    --at.load_failures;
    return die(runner, node, {.reason = "exit 1: cannot load", .own_fault = true});
  }
  if (part == 1 && at.load_stalls > 0) {
    --at.load_stalls;
    return;
  }
  if (part == kParts) return become_ready(runner, node);
  over_link(node, jitter(5), [this, runner, part] {
    pool_.on_loading(runner->launch, std::uint64_t{1000} * part, std::uint64_t{1000} * kParts,
                     agenda_.now());
    act();
  });
  const auto pause =
      std::chrono::duration_cast<Duration>(scenario_.load_time * at.slowness / kParts);
  agenda_.in(pause, [this, runner, node, part] {
    if (!runner->dead) load(runner, node, part + 1);
  });
}

void World::become_ready(const std::shared_ptr<FakeRunner>& runner, std::size_t node) {
  runner->ready = true;
  over_link(node, jitter(5), [this, runner] {
    if (runner->dead) return;
    note("ready replica {} launch {}", number(runner->launch.replica), runner->launch.number);
    checkers_.on_ready(runner->launch, places(), agenda_.now());
    pool_.on_ready(runner->launch, info(), agenda_.now());
    act();
  });
  beat(runner, node);
}

void World::beat(const std::shared_ptr<FakeRunner>& runner, std::size_t node) {
  if (runner->dead || runner->hung) return;
  const Heartbeat beat = runner->beat();
  if (nodes_[node]->link) pool_.on_heartbeat(runner->launch, beat, agenda_.now());
  // An idle one has no news: less often, and still within the shortest time that a hang takes.
  const Duration pause = runner->jobs().empty() ? seconds(4) : seconds(1);
  agenda_.in(pause, [this, runner, node] { this->beat(runner, node); });
}

// The process ends. Its sockets close and its agent tells, in either order.
void World::die(const std::shared_ptr<FakeRunner>& runner, std::size_t node, Exit exit,
                TicketId killer) {
  if (runner->dead) return;
  note("runner of replica {} launch {} dies: {}", number(runner->launch.replica),
       runner->launch.number, exit.reason);
  runner->dead = true;
  std::erase_if(nodes_[node]->runners, [&](const auto& entry) { return entry.second == runner; });
  for (const Job& job : runner->jobs()) {
    over_link(node, jitter(60), [this, job] { fail(job.ticket, job.attempt); });
  }
  over_link(node, jitter(40), [this, launch = runner->launch, exit = std::move(exit), killer] {
    if (killer != TicketId{}) checkers_.on_killed_by(killer, launch);
    pool_.on_exited(launch, exit, agenda_.now());
    checkers_.on_failure(launch, agenda_.now());
    act();
  });
}

void World::stop(Launch launch) {
  const std::size_t at = members_[number(launch.replica)].node;
  over_link(at, jitter(20), [this, at, launch] {
    const std::shared_ptr<FakeRunner> runner = nodes_[at]->find(launch.replica);
    if (runner == nullptr || runner->launch != launch) return;
    die(runner, at, {.reason = "stopped"});
  });
}

void World::kill(std::size_t node, bool own_fault) {
  FakeNode& at = *nodes_[node];
  if (at.runners.empty()) return;
  const auto runner = at.runners[random_.below(at.runners.size())].second;
  die(runner, node,
      {.reason = own_fault ? "SIGSEGV" : "killed by signal 9", .own_fault = own_fault});
}

void World::hang(std::size_t node) {
  for (const auto& [index, runner] : nodes_[node]->runners) {
    if (!runner->ready) continue;
    note("replica {} hangs", number(index));
    runner->hung = true;
  }
}

void World::cut(std::size_t node, Duration time, bool reboot) {
  FakeNode& at = *nodes_[node];
  if (!at.link) return;
  note("link of {} cut for {:.0f} s{}", at.id.str(), to_s(time), reboot ? ", rebooting" : "");
  at.link = false;
  const std::uint32_t cut = ++at.cuts;
  const auto end_runners = [this, node] {
    for (const auto& [index, runner] : nodes_[node]->runners) runner->dead = true;
    nodes_[node]->runners.clear();
  };
  if (reboot) end_runners();
  const auto still = [this, node, cut] { return !nodes_[node]->link && nodes_[node]->cuts == cut; };
  agenda_.in(kLinkSilence, [this, node, still] {
    if (!still()) return;
    FakeNode& it = *nodes_[node];
    it.told_away = true;
    note("node {} is away", it.id.str());
    pool_.on_node_lost(it.id, "link silent for 15 s", agenda_.now());
    act();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].node == node) {
        checkers_.on_node(static_cast<ReplicaIndex>(i), false, agenda_.now());
      }
    }
  });
  agenda_.in(kAgentGrace, [still, end_runners] {
    if (still()) end_runners();
  });
  agenda_.in(time, [this, node, still] {
    if (!still()) return;
    nodes_[node]->link = true;
    if (nodes_[node]->told_away) agenda_.in(jitter(15'000), [this, node] { handshake(node); });
  });
}

// The agent is there again and says what it holds.
void World::handshake(std::size_t node) {
  FakeNode& at = *nodes_[node];
  if (!at.link || !at.told_away) return;
  at.told_away = false;
  note("node {} is back", at.id.str());
  // Runners of replicas whose places others have.
  std::erase_if(at.runners, [&](const auto& entry) {
    const Member& member = members_[number(entry.first)];
    if (member.node == node && entry.second->launch.number > member.before) return false;
    entry.second->dead = true;
    return true;
  });
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (member.node != node) continue;
    const auto index = static_cast<ReplicaIndex>(i);
    checkers_.on_node(index, true, agenda_.now());
    const std::shared_ptr<FakeRunner> runner = at.find(index);
    if (runner == nullptr) continue;
    if (member.removed || !runner->ready || runner->launch.number != member.launch) {
      runner->dead = true;  // not in the desired state
      std::erase_if(at.runners, [&](const auto& entry) { return entry.second == runner; });
      continue;
    }
    const Launch launch = pool_.adopt(index, info(), agenda_.now());
    member.launch = launch.number;
    runner->launch = launch;
    note("replica {} adopted as launch {}", i, launch.number);
    checkers_.on_adopted(launch, places(), agenda_.now());
    act();
  }
  pool_.on_node_back(at.id, agenda_.now());
  act();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].node == node && !members_[i].removed) {
      checkers_.on_came_back(static_cast<ReplicaIndex>(i));
    }
  }
}

void World::drain(std::size_t member, AfterDrain after) {
  const auto index = static_cast<ReplicaIndex>(member);
  note("drain replica {} ({})", member, static_cast<int>(after));
  const bool force = random_.chance(0.2);
  checkers_.on_drain(index, after, force, agenda_.now());
  pool_.drain(index, after, force, agenda_.now());
  if (after == AfterDrain::Remove) members_[member].removed = true;
  act();
}

void World::remove_node(std::size_t node) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].node == node && !members_[i].removed) drain(i, AfterDrain::Remove);
  }
}

void World::admin(std::size_t node, AfterDrain after, Duration until_resume) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].node != node || members_[i].removed) continue;
    drain(i, after);
    if (after != AfterDrain::Hold) continue;
    agenda_.in(until_resume, [this, i] {
      note("resume replica {}", i);
      checkers_.on_resume(static_cast<ReplicaIndex>(i));
      pool_.resume(static_cast<ReplicaIndex>(i), agenda_.now());
      act();
    });
  }
}

// A new generation beside the old one; ten minutes later the one that did not come up goes.
void World::reload() {
  if (reloading_) return;
  reloading_ = true;
  const Generation before = generation_;
  generation_ = static_cast<Generation>(static_cast<std::uint32_t>(before) + 1);
  note("reload to generation {}", static_cast<unsigned>(generation_));
  std::vector<std::size_t> on;
  for (const Member& member : members_) {
    if (!member.removed) on.push_back(member.node);
  }
  for (const std::size_t node : on) add_replica(node, generation_);
  agenda_.in(std::chrono::minutes(10), [this, before] {
    const PoolStatus status = pool_.snapshot(agenda_.now());
    const bool up = std::any_of(status.replicas.begin(), status.replicas.end(), [&](const auto& r) {
      return r.live && r.generation == generation_;
    });
    if (!up) generation_ = before;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].removed && members_[i].generation != generation_)
        drain(i, AfterDrain::Remove);
    }
    reloading_ = false;
  });
}

void World::calm() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    FakeNode& node = *nodes_[i];
    node.slowness = 1;
    node.fail_fast = false;
    node.load_failures = node.load_stalls = 0;
    if (node.link) continue;
    node.link = true;
    if (node.told_away) agenda_.in(jitter(15'000), [this, i] { handshake(i); });
  }
}

void World::view(bool late) {
  // While nothing waits a look now and then will do; at rest what was true is true.
  const bool at_rest = pool_.version() == viewed_version_ && pool_.live_count() == viewed_replicas_;
  const int pause = pool_.queue_depth() > 0 ? 1 : at_rest ? 60 : 5;
  if (++since_view_ < pause) return;
  since_view_ = 0;
  const PoolStatus status = pool_.snapshot(agenda_.now());
  viewed_version_ = pool_.version();
  viewed_replicas_ = status.replicas_total;
  checkers_.on_view(status, late, agenda_.now());
}

}  // namespace flotilla::sim
