#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "gateway/control.h"
#include "gateway/guard.h"
#include "gateway/key_ring.h"
#include "gateway/refusals.h"
#include "gateway/request_log.h"
#include "gateway/usage_tally.h"
#include "http/client.h"
#include "http/router.h"

namespace flotilla::gateway {

class History;
class Metrics;

// What a look at the nodes' disks found: one look at a time, and what it found holds for a while.
struct UnloadedModels {
  std::vector<api::ModelEntry> found;
  std::optional<Instant> at;
  bool looking = false;
  std::vector<std::shared_ptr<boost::asio::steady_timer>> waiting;  // rung when it is over
};

// What the routes share. Outlives them; I/O thread only.
struct Service {
  Executor executor;
  const Clock& clock;
  Random& random;
  const Knobs& knobs;  // as the settings are now
  Settings& settings;
  Control& control;
  Guard& guard;
  KeyRing& keys;
  UsageTally& tally;
  std::string own_secret;  // opens /v1 for what the server asks of itself
  History& history;
  Metrics& metrics;
  bool bench_runs = false;
  std::string version;
  std::string endpoint;   // http://HOST:PORT/v1
  http::Endpoint itself;  // where the server reaches itself
  RequestLog& requests;
  Refusals& refusals;
  BlockingThread& text;       // parses what is too large for the I/O thread
  bool draining = false;      // SIGTERM came: nothing new is taken
  std::uint64_t tickets = 0;  // counts requests
  UnloadedModels unloaded = {};
};

// The routes hold `service` by reference.
void add_request_routes(http::Router& router, Service& service);  // /admin/requests, /v1/requests
void add_operation_routes(http::Router& router,
                          Service& service);  // /admin/{settings,events,logs,sessions}
void add_chat_routes(
    http::Router& router,
    Service& service);  // /v1/chat/completions, /v1/models, /health, /livez, /readyz
void add_form_routes(http::Router& router,
                     Service& service);  // the forms beside chat, /tokenize, /v1/embeddings, …
void add_admin_routes(http::Router& router, Service& service);      // /admin/…
void add_key_routes(http::Router& router, Service& service);        // /admin/keys
void add_login_routes(http::Router& router, Service& service);      // /admin/{login,logout}
void add_dashboard_routes(http::Router& router, Service& service);  // /

// Writes what has been used since the last time; a failure is only logged, and written with the
// next.
Awaitable<void> write_usage(Service& service);

// Before the loop runs.
Result<void> read_stored_keys(const Control& control, KeyRing& keys);

// A route of /admin: who may is checked before it runs, and its failure is the answer.
using AdminRoute = Task<http::Response> (*)(Service&, http::Request, http::PathParams);
void add_admin_route(http::Router& router, Service& service, const char* method,
                     const char* pattern, AdminRoute route);

// POST /v1/chat/completions, of whatever form the client's request was.
Awaitable<void> answer_chat(Service& service, http::Exchange& exchange);
Error unknown_model(const std::string& model, const Control& control);
// Why a request is not taken at all.
Result<Caller> may_enter(Service& service, const http::Request& request);
// What is larger is parsed beside the I/O thread: it takes longer than a step of somebody's stream.
inline constexpr std::size_t kParseHere = 256 << 10;

// Model files on the nodes that no pool has loaded, by the aliases that they would get; at most 10
// s old.
Awaitable<std::vector<api::ModelEntry>> unloaded_models(Service& service);

// Errors in the API's own form: OpenAI's, or problem JSON.
Awaitable<void> answer_openai_error(http::Exchange& exchange, Error error);
Awaitable<void> answer_problem(http::Exchange& exchange, Error error);

}  // namespace flotilla::gateway
