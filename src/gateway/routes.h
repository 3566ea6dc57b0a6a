#pragma once

#include <memory>
#include <optional>
#include <set>
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
class Transfers;

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
  std::set<std::string> keys_under_way = {};  // ids and names of keys that are being written
  std::string own_secret;                     // opens /v1 for what the server asks of itself
  std::string cache_secret;                   // of what engines are told of cache groups
  Transfers& transfers;
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
//
// All that /openapi.json describes; beside them there is only the dashboard.
void add_all_routes(http::Router& router, Service& service);

void add_request_routes(http::Router& router, Service& service);  // /admin/requests, /v1/requests
void add_operation_routes(http::Router& router,
                          Service& service);  // /admin/{settings,events,logs,sessions}
void add_chat_routes(
    http::Router& router,
    Service& service);  // /v1/chat/completions, /v1/embeddings, /v1/models, /health, /livez, …
void add_form_routes(http::Router& router,
                     Service& service);  // the forms beside chat, /tokenize, /detokenize
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
// One that answers piece by piece: who may is checked before it looks at anything.
using AdminStream = Awaitable<void> (*)(Service&, http::Exchange&, http::PathParams);
void add_admin_stream(http::Router& router, Service& service, const char* pattern,
                      AdminStream stream);

// Why a request is not taken at all. Of a key it takes one of its requests, whatever comes of it.
Result<Caller> may_enter(Service& service, const http::Request& request);
// As may_enter() has let it in before: nothing more is taken.
Result<Caller> has_entered(Service& service, const http::Request& request);
// /admin, likewise: the guard looks once at a request, before its body is read if it has one.
Result<void> may_administer(Service& service, const http::Request& request);
// A wrong admin token that is worth telling of: a line of the audit, and a warning.
void note_wrong_token(Service& service, const http::Request& request);
// POST /v1/chat/completions, of whatever form the client's request was, and who may enter with it.
Awaitable<void> answer_chat(Service& service, http::Exchange& exchange, Result<Caller> caller);
Error no_cluster(const std::string& id);
// What there is not, or not for this caller: which of both is not told.
Error unknown_model(const Service& service, const std::string& model, const Caller& caller);

// Model files on the nodes that no pool has loaded, by the aliases that they would get; at most 10
// s old.
Awaitable<std::vector<api::ModelEntry>> unloaded_models(Service& service);

// Errors in the API's own form: OpenAI's, or problem JSON.
Awaitable<void> answer_openai_error(http::Exchange& exchange, Error error);
Awaitable<void> answer_problem(http::Exchange& exchange, Error error);

}  // namespace flotilla::gateway
