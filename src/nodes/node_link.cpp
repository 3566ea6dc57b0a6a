#include "nodes/node_link.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "nodes/link_session.h"

namespace flotilla::nodes {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;

constexpr std::chrono::milliseconds kUnheard{2000};  // for an agent that has said nothing yet
constexpr std::chrono::seconds kOpenSocket{20};
constexpr std::chrono::seconds kReplaced{10};  // for an agent of another protocol to end

}  // namespace

// Shared by the handle, its coroutine and requests under way, so that each may end last.
struct NodeLink::State : std::enable_shared_from_this<NodeLink::State> {
  struct Request {
    explicit Request(const Executor& executor) : done(executor) {}
    steady_timer done;  // cancelled by the answer or by the link's end
    std::optional<api::AgentEvent> answer;
    bool lost = false;
  };

  explicit State(Options taken)
      : options(std::move(taken)),
        random(options.seed),
        retry(options.executor),
        finished(options.executor, steady_timer::time_point::max()),
        end_limit(options.end_after) {}

  Awaitable<void> run();
  Awaitable<std::string> connect_once();
  Awaitable<void> wait_to_retry(bool at_once);
  void take_event(api::AgentEvent event);
  void take_hello(api::AgentHello event);
  Awaitable<void> greet(std::shared_ptr<LinkSession> greeted, api::AgentHello event);
  Awaitable<void> wait_replaced(std::shared_ptr<LinkSession> old, std::string reason);
  void tell(api::AgentEvent event);
  Awaitable<void> tell_when_open(std::shared_ptr<LinkSession> current, api::ReplicaReady event);
  template <class Answer>
  void take_answer(Answer answer);
  void give_up(const std::string& replica, std::string reason);
  void take_barred(const std::string& replica, std::string why);
  Result<void> reach(const std::string& replica, std::string& socket);
  void set(LinkState state, std::string reason);
  Result<void> send(const api::AgentCommand& command);
  Result<void> post(const api::AgentCommand& command);
  template <class Answer>
  static Task<Answer> ask(std::shared_ptr<State> self, std::int64_t id, api::AgentCommand command,
                          std::chrono::milliseconds limit);

  Options options;
  Random random;
  LinkStatus status;
  std::optional<api::AgentHello> hello;
  std::shared_ptr<LinkSession> session;
  steady_timer retry;
  steady_timer finished;  // cancelled when the coroutine is at its end
  std::map<std::int64_t, std::shared_ptr<Request>> requests;
  std::int64_t next_request = 1;
  bool greeting = false;                // the hello came, the sockets that it names open yet
  std::vector<api::AgentEvent> behind;  // the hello, while greeting
  bool other_version = false;
  bool restarting = false;  // its end is our wish
  bool replace = false;     // an agent of another protocol is to end: its program is another now
  bool started = false;
  bool closing = false;
  bool running = false;
  bool keep = false;                    // closing: the agent lives on
  std::chrono::milliseconds end_limit;  // how long an agent whose link is gone may take to end
};

void NodeLink::State::set(LinkState state, std::string reason) {
  status = {.state = state,
            .reason = std::move(reason),
            .other_version = state != LinkState::Up && other_version};
  if (options.on_state) options.on_state(status);
}

Awaitable<void> NodeLink::State::run() {
  const auto self = shared_from_this();
  // Out of the call that started us: callbacks come from the loop only.
  co_await boost::asio::post(options.executor, kAwait);
  while (!closing) {
    set(LinkState::Connecting, std::move(status.reason));  // why it was down, until it is up
    const Instant begin = options.clock->now();
    std::string reason = co_await connect_once();
    if (closing) break;
    log::warning("node {}: link down: {}", options.name, reason);
    const bool was_stable =
        status.state == LinkState::Up && options.clock->now() - begin >= options.retry_max;
    set(LinkState::Down, std::move(reason));
    co_await wait_to_retry(std::exchange(restarting, false) || was_stable);
  }
  running = false;
  finished.cancel();
}

Awaitable<std::string> NodeLink::State::connect_once() {
  auto process = platform::Process::spawn(options.transport->agent_command());
  if (!process) co_return process.error().message;
  LinkSession::Options about{
      .executor = options.executor,
      .clock = options.clock,
      .name = options.name,
      .heartbeat = options.heartbeat,
      .dead_after = options.dead_after,
      .on_event = [this](api::AgentEvent event) { take_event(std::move(event)); },
      .remedy =
          [this](const std::vector<std::string>& lines) {
            return options.transport->remedy(lines);
          }};
  other_version = false;
  session = std::make_shared<LinkSession>(std::move(about), std::move(*process));
  const auto current = session;
  std::string reason = co_await current->run();
  session.reset();
  options.transport->close_all_sockets();
  hello.reset();
  greeting = false;
  behind.clear();
  for (auto& [id, request] : std::exchange(requests, {})) {
    request->lost = true;
    request->done.cancel();
  }
  if (closing && keep)
    current->release_process();
  else
    co_await current->end_process(end_limit);
  co_return reason;
}

// The first retry after a link that had been stable is at once, the others are spread, so that a
// gateway with many nodes does not call them in step.
Awaitable<void> NodeLink::State::wait_to_retry(bool at_once) {
  const double spread = static_cast<double>((options.retry_max - options.retry_min).count());
  const auto wait = options.retry_min +
                    std::chrono::milliseconds(static_cast<std::int64_t>(spread * random.uniform()));
  retry.expires_after(at_once ? std::chrono::milliseconds(0) : wait);
  co_await retry.async_wait(kAwait);
}

void NodeLink::State::take_hello(api::AgentHello event) {
  const bool replaced = std::exchange(replace, false);
  if (event.protocol != api::kAgentProtocol) {
    other_version = true;
    std::string reason = fmt::format(
        "the agent (version {}) speaks protocol {}, this gateway {}; install the same version on "
        "both: flotilla node bootstrap {}",
        event.version, event.protocol, api::kAgentProtocol, options.name);
    if (!replaced) return session->cut(std::move(reason));
    // Each try begins its grace anew: cut off, it would live on for as long as we call.
    restarting = true;
    (void)post(api::EndAgent{});
    boost::asio::co_spawn(options.executor, wait_replaced(session, std::move(reason)),
                          boost::asio::detached);
    return;
  }
  greeting = true;
  for (api::HeldReplica& held : event.holds)
    if (held.info) (void)reach(held.replica, held.socket);  // else greet() says that it is nobody's
  boost::asio::co_spawn(options.executor, greet(session, std::move(event)), boost::asio::detached);
}

// Up only when the replicas that it holds can be reached: who hears of them talks to them at once.
Awaitable<void> NodeLink::State::greet(std::shared_ptr<LinkSession> greeted,
                                       api::AgentHello event) {
  const auto self = shared_from_this();
  for (api::HeldReplica& held : event.holds) {
    if (!held.info || options.transport->is_open(held.replica)) continue;
    const auto opened = co_await options.transport->wait_open(held.replica, kOpenSocket);
    if (opened) continue;
    log::warning("node {}: replica {}: {}", options.name, held.replica, opened.error().message);
    held.info.reset();
    held.generation.clear();  // nobody's: it is ended
  }
  if (session != greeted || closing) co_return;
  greeting = false;
  hello = event;
  set(LinkState::Up, {});
  options.on_event(std::move(event));
  for (api::AgentEvent& later : std::exchange(behind, {})) {
    if (session == greeted && !closing) tell(std::move(later));
  }
}

// One that does not end is cut off. The link's end, or ours, ends the wait: no retry is waited for
// while there is a session.
Awaitable<void> NodeLink::State::wait_replaced(std::shared_ptr<LinkSession> old,
                                               std::string reason) {
  const auto self = shared_from_this();
  if (session == old && !closing) {
    retry.expires_after(kReplaced);
    co_await retry.async_wait(kAwait);
  }
  old->cut(std::move(reason));
}

void NodeLink::State::take_event(api::AgentEvent event) {
  if (closing) return;
  status.round_trip_ms = session->round_trip_ms();
  if (auto* refused = std::get_if<api::AgentRefused>(&event)) return session->cut(refused->reason);
  if (auto* said = std::get_if<api::AgentHello>(&event)) return take_hello(std::move(*said));
  if (greeting) return behind.push_back(std::move(event));
  if (!hello && restarting) return;  // of another protocol, and about to end
  if (!hello) return session->cut("the agent's first frame is no hello");
  tell(std::move(event));
}

void NodeLink::State::tell(api::AgentEvent event) {
  if (auto* list = std::get_if<api::ModelList>(&event)) return take_answer(std::move(*list));
  if (auto* answer = std::get_if<api::PreflightAnswer>(&event))
    return take_answer(std::move(*answer));
  if (auto* text = std::get_if<api::LogText>(&event)) return take_answer(std::move(*text));
  if (auto* spawned = std::get_if<api::ReplicaSpawned>(&event)) {
    const auto reached = reach(spawned->replica, spawned->socket);
    if (!reached) return give_up(spawned->replica, reached.error().message);
  }
  if (auto* exited = std::get_if<api::ReplicaExited>(&event))
    options.transport->close_socket(exited->replica);
  if (auto* ready = std::get_if<api::ReplicaReady>(&event);
      ready != nullptr && !options.transport->is_open(ready->replica)) {
    boost::asio::co_spawn(options.executor, tell_when_open(session, std::move(*ready)),
                          boost::asio::detached);
    return;
  }
  options.on_event(event);
}

Awaitable<void> NodeLink::State::tell_when_open(std::shared_ptr<LinkSession> current,
                                                api::ReplicaReady event) {
  const auto self = shared_from_this();
  const std::string replica = event.replica;
  const auto opened = co_await options.transport->wait_open(replica, kOpenSocket);
  if (session != current || closing) co_return;
  if (opened) {
    options.on_event(std::move(event));
  } else if (opened.error().code != Code::NotFound) {  // else it has ended meanwhile
    give_up(replica, opened.error().message);
  }
}

// It may run, but cannot be talked to.
void NodeLink::State::give_up(const std::string& replica, std::string reason) {
  (void)send(api::StopReplica{.replica = replica, .grace_ms = 0});
  api::ReplicaExited unreachable;
  unreachable.replica = replica;
  unreachable.reason = std::move(reason);
  options.on_event(std::move(unreachable));
}

// Nobody has to have asked: an engine is talked to before it is ready. Who greets asks for himself.
void NodeLink::State::take_barred(const std::string& replica, std::string why) {
  if (closing || !session || greeting) return;
  log::warning("node {}: replica {}: {}", options.name, replica, why);
  options.transport->close_socket(replica);
  give_up(replica, std::move(why));
}

Result<void> NodeLink::State::reach(const std::string& replica, std::string& socket) {
  auto local = options.transport->open_socket(replica, socket);
  socket = local ? *local : std::string();
  if (local) return {};
  log::warning("node {}: replica {}: {}", options.name, replica, local.error().message);
  return fail(local.error());
}

template <class Answer>
void NodeLink::State::take_answer(Answer answer) {
  const auto found = requests.find(answer.request);
  if (found == requests.end()) return;  // came too late
  found->second->answer = std::move(answer);
  found->second->done.cancel();
  requests.erase(found);
}

Result<void> NodeLink::State::send(const api::AgentCommand& command) {
  if (status.state != LinkState::Up || closing || !session)
    return fail(Code::Unavailable, fmt::format("node {} is not connected{}{}", options.name,
                                               status.reason.empty() ? "" : ": ", status.reason));
  return post(command);
}

// Also before the agent's hello. There must be a session.
Result<void> NodeLink::State::post(const api::AgentCommand& command) {
  auto frame = api::encode_frame(command);
  if (!frame) return fail(frame.error());
  session->send(std::move(*frame));
  return {};
}

template <class Answer>
Task<Answer> NodeLink::State::ask(std::shared_ptr<State> self, std::int64_t id,
                                  api::AgentCommand command, std::chrono::milliseconds limit) {
  const auto request = std::make_shared<Request>(self->options.executor);
  self->requests[id] = request;
  if (auto sent = self->send(command); !sent) {
    self->requests.erase(id);
    co_return fail(sent.error());
  }
  request->done.expires_after(limit);
  co_await request->done.async_wait(kAwait);
  if (request->answer) co_return std::move(std::get<Answer>(*request->answer));
  self->requests.erase(id);
  if (request->lost)
    co_return fail(Code::Unavailable,
                   fmt::format("node {} went away: {}", self->options.name, self->status.reason));
  co_return fail(Code::DeadlineExceeded, fmt::format("node {} did not answer within {} ms",
                                                     self->options.name, limit.count()));
}

NodeLink::NodeLink(Options options) : state_(std::make_shared<State>(std::move(options))) {
  CHECK(state_->options.clock != nullptr && state_->options.transport != nullptr);
  CHECK(state_->options.on_event != nullptr);
  state_->options.transport->on_barred = [state = state_.get()](const std::string& replica,
                                                                std::string why) {
    state->take_barred(replica, std::move(why));
  };
}

NodeLink::~NodeLink() {
  state_->closing = true;
  state_->options.on_state = nullptr;
  state_->options.on_event = nullptr;
  state_->retry.cancel();
  if (state_->session) state_->session->cut("closed");
}

void NodeLink::start() {
  CHECK(!std::exchange(state_->started, true));
  state_->running = true;
  boost::asio::co_spawn(state_->options.executor, state_->run(), boost::asio::detached);
}

const LinkStatus& NodeLink::status() const { return state_->status; }

const api::AgentHello* NodeLink::hello() const { return state_->hello ? &*state_->hello : nullptr; }

Result<void> NodeLink::start_replica(const api::StartReplica& start) { return state_->send(start); }
Result<void> NodeLink::stop_replica(const api::StopReplica& stop) { return state_->send(stop); }

Task<api::ModelList> NodeLink::list_models(std::string models_dir,
                                           std::chrono::milliseconds limit) {
  const std::int64_t id = state_->next_request++;
  return State::ask<api::ModelList>(state_, id, api::ListModels{id, std::move(models_dir)}, limit);
}

Task<api::PreflightAnswer> NodeLink::preflight(api::Preflight question,
                                               std::chrono::milliseconds limit) {
  const std::int64_t id = question.request = state_->next_request++;
  return State::ask<api::PreflightAnswer>(state_, id, std::move(question), limit);
}

Task<api::LogText> NodeLink::read_log(api::ReadLog what, std::chrono::milliseconds limit) {
  const std::int64_t id = what.request = state_->next_request++;
  return State::ask<api::LogText>(state_, id, std::move(what), limit);
}

void NodeLink::retry_now() { state_->retry.cancel(); }

void NodeLink::restart_agent() {
  state_->restarting = state_->send(api::EndAgent{}).has_value();
  if (state_->restarting) return;
  state_->replace = state_->status.other_version;
  state_->retry.cancel();
}

Awaitable<void> NodeLink::close(Runners runners, std::chrono::milliseconds grace) {
  const auto state = state_;
  state->keep = runners == Runners::Keep;
  state->end_limit = grace + state->options.end_after;
  const bool up = state->status.state == LinkState::Up;
  // Also where its hello has not come yet: cut off, it would stay for its grace.
  if (!state->keep && state->session) (void)state->post(api::EndAgent{grace.count()});
  state->closing = true;
  state->retry.cancel();
  if (state->session && state->keep) state->session->cut("closed");
  // The agent ends by itself; one that does not is cut.
  if (state->running) {
    steady_timer limit(state->options.executor,
                       up ? state->end_limit : std::min(state->end_limit, kUnheard));
    co_await (state->finished.async_wait(kAwait) || limit.async_wait(kAwait));
  }
  if (state->session) {
    state->end_limit = std::chrono::milliseconds(0);  // it had its time
    state->session->cut("closed");
  }
  while (state->running) co_await state->finished.async_wait(kAwait);
}

}  // namespace flotilla::nodes
