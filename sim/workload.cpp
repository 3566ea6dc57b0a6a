#include "sim/workload.h"

#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace flotilla::sim {

using namespace cluster;
using std::chrono::seconds;

Workload::Workload(const Scenario& scenario, World& world, Agenda& agenda, Random& random)
    : scenario_(scenario), world_(world), agenda_(agenda), random_(random) {
  for (int i = 0; i < scenario.sessions; ++i) {
    sessions_.push_back(
        {.key = static_cast<int>(random.below(static_cast<std::uint64_t>(scenario.keys))),
         .named = random.chance(0.5),
         .messages = {}});
  }
  next();
}

void Workload::next() {
  const double pause = -std::log(1 - random_.uniform()) / scenario_.requests_per_s;
  agenda_.in(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(pause)), [this] {
    if (stopped_) return;
    const std::uint64_t burst = random_.chance(0.005) ? 10 + random_.below(40) : 1;
    for (std::uint64_t i = 0; i < burst; ++i) world_.submit(make_request());
    next();
  });
}

// Whose request it is, and of which conversation.
void Workload::converse(Request& out) {
  int key = static_cast<int>(random_.below(static_cast<std::uint64_t>(scenario_.keys)));
  if (!sessions_.empty()) {
    // The first sessions speak most often.
    const double skewed = random_.uniform() * random_.uniform();
    const auto at = static_cast<std::size_t>(skewed * static_cast<double>(sessions_.size()));
    Session& session = sessions_[at];
    key = session.key;
    if (session.messages.size() > 20 || random_.chance(0.1)) session.messages.clear();
    if (!session.messages.empty()) session.messages.push_back({random_.next(), true});
    session.messages.push_back({random_.next(), false});
    out.ticket.conversation =
        conversation_keys(fmt::format("k{}", key),
                          session.named ? fmt::format("s{}", at) : std::string(), session.messages);
  }
  out.ticket.key = fmt::format("k{}", key);
  out.ticket.weight = 1 + key % 3;
}

Request Workload::make_request() {
  Request out;
  converse(out);
  const double size = random_.uniform();
  out.prompt_tokens = 16 + static_cast<int>(2000 * size * size * size);
  out.output_tokens = 1 + static_cast<int>(400 * random_.uniform());
  out.ticket.tokens = static_cast<std::uint64_t>(out.prompt_tokens);
  out.ticket.bytes = out.ticket.tokens * 4;
  if (scenario_.has(Fault::Cancel) && random_.chance(0.1)) {
    out.patience = std::chrono::milliseconds(1 + random_.below(20'000));
  }
  if (random_.chance(0.05)) out.timeout = seconds(1 + random_.below(100));
  if (scenario_.has(Fault::Poison) && random_.chance(0.002)) {
    out.poison = true;
    out.named = random_.chance(0.5);
  }
  return out;
}

}  // namespace flotilla::sim
