#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/engine_request.h"
#include "api/error_body.h"
#include "cluster/affinity.h"
#include "gateway/chat_run.h"
#include "gateway/key_use.h"
#include "gateway/parse_body.h"
#include "gateway/routes.h"
#include "gateway/sender.h"
#include "gateway/status.h"
#include "http/header_values.h"

namespace flotilla::gateway {
namespace {

std::string ready_names(const Service& service, const Caller& caller) {
  std::string names;
  for (const auto& pool : service.control.pools()) {
    if (pool->brain().live_count() > 0 && may_ask(service.keys, caller, *pool))
      names += (names.empty() ? "" : ", ") + pool->alias();
  }
  return names.empty() ? "none" : names;
}

// A conversation's names: the session that the client gives, else what its messages hash to. They
// are those of one `scope`: whether another has had a conversation is not to be learnt.
cluster::ConversationKeys conversation_of(const http::Request& request,
                                          const api::ChatRequest& chat, const std::string& scope) {
  const std::string_view header = request.headers.find("X-Session-Id").value_or("");
  const std::string session = header.empty() ? chat.session_id : std::string(header);
  std::vector<cluster::MessageDigest> digests;
  digests.reserve(chat.messages.size());
  for (const api::ChatMessage& message : chat.messages) {
    std::uint64_t hash = cluster::digest(message.content, cluster::digest(message.role));
    for (const auto& call : message.tool_calls)
      hash = cluster::digest(call.arguments, cluster::digest(call.name, hash));
    digests.push_back({.hash = hash, .assistant = message.role == "assistant"});
  }
  auto keys = cluster::conversation_keys(scope, session, digests);
  const std::string& tie = chat.prompt_cache_key.empty() ? chat.user : chat.prompt_cache_key;
  if (!tie.empty()) keys.tie_break = cluster::digest(tie, cluster::digest(scope));
  return keys;
}

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

api::TraceContext trace_of(const http::Request& request) {
  return api::read_trace_context(http::values_of(request.headers, "traceparent"),
                                 http::values_of(request.headers, "tracestate"));
}

// What a request that ends early leaves behind: an id to ask for, and its error.
Awaitable<void> refuse_chat(http::Exchange& exchange, RequestTrace& trace, Error error) {
  http::Response response =
      http::json_response(api::http_status(error.code), api::openai_error_body(error));
  response.headers.set("x-request-id", trace.id());
  http::add_error_fields(response.headers, error);
  trace.ended(response.status, error.reason.empty() ? error.message : error.reason, {});
  co_await exchange.respond(std::move(response));
}

ChatRun::Options chat_options(Service& service, std::shared_ptr<PoolRuntime> pool,
                              http::Request request, api::ServedRequest read, KeyUse use,
                              std::shared_ptr<RequestTrace> trace) {
  const api::ChatRequest& chat = read.chat;
  const Instant now = service.clock.now();
  ChatRun::Options options;
  options.pool = std::move(pool);
  options.id = static_cast<cluster::TicketId>(++service.tickets);
  options.clock = &service.clock;
  options.refusals = &service.refusals;
  options.first_token_limit = service.knobs.request_deadline;

  cluster::Ticket& ticket = options.ticket;
  ticket.id = options.id;
  ticket.key = trace->record().owner;
  ticket.weight = use.weight;
  ticket.bytes = request.body.size() + (read.for_engines ? read.for_engines->fields.size() : 0);
  ticket.tokens = queue_tokens(chat, request.body.size());
  ticket.prompt_tokens = tokens_about(request.body.size());
  ticket.conversation = conversation_of(
      request, chat, conversation_scope(service.cache_secret, use.cache_group, ticket.key));
  ticket.deadline = now + service.knobs.request_deadline;
  if (chat.timeout_s && seconds(*chat.timeout_s) < service.knobs.request_deadline) {
    ticket.deadline = now + seconds(*chat.timeout_s);
    ticket.own_timeout = true;
  }

  options.headers = std::move(use.headers);
  options.headers.set("x-request-id", trace->id());
  options.job.lease = std::move(use.lease);
  options.spender = std::move(use.spender);
  options.tally = &service.tally;

  ChatJob& job = options.job;
  job.cache_group = std::move(use.cache_group);
  job.cache_secret = service.cache_secret;
  job.cache_shared =
      is_cache_shared(service.keys, service.guard.has_token(), options.pool->generation().load);
  job.alias = chat.model;
  job.request_id = trace->id();
  job.trace = std::move(trace);
  job.trace_context = trace_of(request);
  job.created_unix_s = service.clock.unix_ms() / 1000;
  job.seed = chat.seed.value_or(service.random.next());
  job.include_usage = chat.include_usage;
  job.arrived = now;
  job.deadline = ticket.deadline;
  if (chat.timeout_s) job.ends = now + seconds(*chat.timeout_s);
  job.stream = chat.stream;
  job.pace = Pace(service.history, service.metrics, service.clock, options.pool->alias());
  job.body = std::move(request.body);
  job.for_engines = std::move(read.for_engines);
  job.text = &service.text;
  return options;
}

// What let a request in, looked at once more when it gets its turn.
std::function<Result<void>(const PoolRuntime&)> second_look(Service& service,
                                                            const http::Request& request,
                                                            const Caller& caller,
                                                            const std::string& model) {
  http::Request head;  // of which a log-in is asked for, and nobody else anything
  if (caller.is_operator) head.headers = request.headers;
  return [&service, head = std::move(head), caller, model](const PoolRuntime& pool) {
    const std::int64_t unix_s = service.clock.unix_ms() / 1000;
    auto may = service.guard.still_may_use(head, caller, service.clock.now(), unix_s);
    if (may && !may_ask(service.keys, caller, pool))
      may = fail(unknown_model(service, model, caller));
    return may;
  };
}

Error poison(const std::string& model) {
  return Error{.code = Code::InvalidArgument,
               .message = fmt::format("this very request crashed two runners of \"{}\"; it is "
                                      "refused for 10 minutes",
                                      model),
               .reason = "poison"};
}

api::ModelEntry model_entry(const PoolRuntime& pool, const std::string& id, const Fleet& fleet) {
  return api::ModelEntry{.id = id,
                         .created = pool.options().created_unix_s,
                         .ready = pool.brain().live_count() > 0,
                         .pool = pool_status(pool, fleet)};
}

Awaitable<void> list_models(Service& service, http::Exchange& exchange) {
  const auto may = may_enter(service, exchange.request());
  if (!may) {
    Error error = may.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  // What is on disks is not for keys that may ask for some models only.
  const KeyRing::Key* key = service.keys.find(may->key);
  const bool all = exchange.request().query("include_unloaded") == "true" &&
                   (key == nullptr || key->spec.models.empty());
  std::vector<api::ModelEntry> models;
  for (const auto& pool : service.control.pools()) {
    if (!all && pool->brain().live_count() == 0) continue;
    if (!may_ask(service.keys, *may, *pool)) continue;
    models.push_back(model_entry(*pool, pool->alias(), service.control.fleet()));
    for (const std::string& alias : pool->generation().load.aliases) {
      models.push_back(model_entry(*pool, alias, service.control.fleet()));
    }
  }
  if (all) {
    auto files = co_await unloaded_models(service);
    std::ranges::move(files, std::back_inserter(models));
  }
  http::Response response = http::json_response(200, api::models_json(models));
  co_await exchange.respond(std::move(response));
}

Awaitable<void> show_model(Service& service, http::Exchange& exchange, std::string id) {
  const auto may = may_enter(service, exchange.request());
  if (!may) {
    Error error = may.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  const auto pool = service.control.find_pool_for(id);
  if (!pool || !may_ask(service.keys, *may, *pool)) {
    Error error = unknown_model(service, id, *may);
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  const api::ModelEntry entry = model_entry(*pool, id, service.control.fleet());
  http::Response response = http::json_response(200, api::model_json(entry));
  co_await exchange.respond(std::move(response));
}

// idle: nothing is declared; ok: every replica lives; degraded: some do not.
const char* health_word(const Control& control) {
  bool any = false;
  for (const auto& pool : control.pools()) {
    any = true;
    const auto snapshot = pool->brain().snapshot(pool->now());
    if (snapshot.replicas_live < snapshot.replicas_total) return "degraded";
  }
  return any ? "ok" : "idle";
}

Awaitable<void> health(Service& service, http::Exchange& exchange) {
  http::Response response =
      http::json_response(200, fmt::format(R"({{"status":"{}"}})", health_word(service.control)));
  co_await exchange.respond(std::move(response));
}

Awaitable<void> readyz(Service& service, http::Exchange& exchange) {
  const auto& pools = service.control.pools();
  const bool ready = !service.draining && std::ranges::any_of(pools, [](const auto& pool) {
    return pool->brain().live_count() > 0;
  });
  http::Response response =
      http::json_response(ready ? 200 : 503, ready ? R"({"ready":true})" : R"({"ready":false})");
  co_await exchange.respond(std::move(response));
}

}  // namespace

Error unknown_model(const Service& service, const std::string& model, const Caller& caller) {
  const KeyRing::Key* key = service.keys.find(caller.key);
  const bool bound = key != nullptr && !key->spec.models.empty();
  return Error{
      .code = Code::NotFound,
      .message = fmt::format("there is no model \"{}\"{}; ready: {}", model,
                             bound ? fmt::format(" for API key \"{}\"", key->spec.name) : "",
                             ready_names(service, caller)),
      .param = "model",
      .reason = "model_not_found"};
}

Result<Caller> may_enter(Service& service, const http::Request& request) {
  auto caller = has_entered(service, request);
  if (!caller || caller->key.empty()) return caller;
  if (auto taken = service.keys.take_request(caller->key, service.clock.now()); !taken)
    return fail(taken.error());
  return caller;
}

Result<Caller> has_entered(Service& service, const http::Request& request) {
  const Instant now = service.clock.now();
  const std::int64_t unix_s = service.clock.unix_ms() / 1000;
  const Sender* sender = known_sender(request);
  const auto* known = sender == nullptr ? nullptr : std::get_if<Caller>(sender);
  Result<Caller> caller =
      known != nullptr ? Result<Caller>(*known) : service.guard.may_use(request, now, unix_s);
  if (!caller) return caller;
  if (known != nullptr) {
    if (auto still = service.guard.still_may_use(request, *known, now, unix_s); !still)
      return fail(still.error());
  }
  if (!service.draining) return caller;
  return fail(Error{
      .code = Code::Unavailable, .message = "the server is shutting down", .retry_after_s = 5});
}

Result<void> may_administer(Service& service, const http::Request& request) {
  const Instant now = service.clock.now();
  const Sender* sender = known_sender(request);
  if (sender != nullptr && std::holds_alternative<Administrator>(*sender))
    return service.guard.still_may_administer(request, now);
  auto may = service.guard.may_administer(request, now);
  if (!may && may.error().code == Code::Unauthenticated &&
      service.guard.is_guess_worth_telling(request, now))
    note_wrong_token(service, request);
  return may;
}

namespace {

// By whatever name a request finds their pools.
api::EngineModels engine_models(const Control& control) {
  api::EngineModels out;
  for (const auto& pool : control.pools())
    if (pool->generation().load.is_default) out.all_but = pool->may_have_engines();
  for (const auto& pool : control.pools()) {
    if (pool->may_have_engines() == out.all_but) continue;
    out.names.push_back(pool->alias());
    const auto& aliases = pool->generation().load.aliases;
    out.names.insert(out.names.end(), aliases.begin(), aliases.end());
  }
  return out;
}

// Whether all engines of a pool know what a request asks for.
Result<void> engines_can(const api::ServedRequest& request, const PoolRuntime& pool) {
  if (!request.for_engines) return {};
  const auto engines = pool.engines();
  if (engines.empty()) return {};
  return api::check_engine_can(*request.for_engines, pool.lacks(),
                               fmt::format("{}", fmt::join(engines, " and ")));
}

Awaitable<void> answer(Service& service, http::Exchange& exchange, Result<Caller> caller,
                       Asked asked) {
  if (!caller) {
    Error error = caller.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  api::RequestRecord record;
  record.id = make_request_id();
  record.owner = caller->owner;
  record.peer = exchange.request().peer;
  const api::TraceContext context = trace_of(exchange.request());
  if (!context.empty()) record.moments.push_back({.what = "traced", .detail = context.traceparent});
  const auto trace = service.requests.begin(std::move(record));
  http::Request request = exchange.take_request();
  BodyReader reader{.asked = asked, .engines = engine_models(service.control)};
  auto parsed = co_await parse_body(service.text, request.body, std::move(reader));
  if (!parsed) {
    Error error = parsed.error();
    co_await refuse_chat(exchange, *trace, std::move(error));
    co_return;
  }
  const api::ChatRequest& chat = parsed->chat;
  trace->describe(chat.model, chat.stream);
  auto pool = service.control.find_pool_for(chat.model);
  const bool there = pool && may_ask(service.keys, *caller, *pool);
  const bool refused = service.refusals.holds(caller->owner, request.body, service.clock.now());
  if (!there || refused) {
    Error error = there ? poison(chat.model) : unknown_model(service, chat.model, *caller);
    co_await refuse_chat(exchange, *trace, std::move(error));
    co_return;
  }
  if (const auto can = engines_can(*parsed, *pool); !can) {
    Error error = can.error();
    co_await refuse_chat(exchange, *trace, std::move(error));
    co_return;
  }
  const bool vectors = asked == Asked::Vectors;
  const KeyRing::Cost cost{
      .tokens = tokens_about(request.body.size()), .sequences = chat.n, .in_turn = vectors};
  auto use = use_key(service.keys, *caller, *pool, cost, service.clock.now());
  if (!use) {
    Error error = use.error();
    co_await refuse_chat(exchange, *trace, std::move(error));
    co_return;
  }
  trace->enters(pool->alias(), caller->owner);
  auto may_still = second_look(service, request, *caller, chat.model);
  ChatRun::Options options = chat_options(service, std::move(pool), std::move(request),
                                          std::move(*parsed), std::move(*use), trace);
  options.job.embeddings = vectors;
  options.may_still = std::move(may_still);
  ChatRun run(exchange, service.executor, std::move(options));
  co_await run.run();
}

}  // namespace

Awaitable<void> answer_chat(Service& service, http::Exchange& exchange, Result<Caller> caller) {
  co_await answer(service, exchange, std::move(caller), Asked::Chat);
}

Awaitable<void> answer_openai_error(http::Exchange& exchange, Error error) {
  http::Response response =
      http::json_response(api::http_status(error.code), api::openai_error_body(error));
  http::add_error_fields(response.headers, error);
  co_await exchange.respond(std::move(response));
}

void add_chat_routes(http::Router& router, Service& service) {
  router.add("POST", "/v1/chat/completions",
             [&service](http::Exchange& exchange, http::PathParams) {
               return answer_chat(service, exchange, may_enter(service, exchange.request()));
             });
  router.add("POST", "/v1/embeddings", [&service](http::Exchange& exchange, http::PathParams) {
    return answer(service, exchange, may_enter(service, exchange.request()), Asked::Vectors);
  });
  router.add("GET", "/v1/models", [&service](http::Exchange& exchange, http::PathParams) {
    return list_models(service, exchange);
  });
  router.add("GET", "/v1/models/{id}",
             [&service](http::Exchange& exchange, http::PathParams params) {
               return show_model(service, exchange, params["id"]);
             });
  for (const char* path : {"/health", "/livez"}) {
    router.add("GET", path, [&service](http::Exchange& exchange, http::PathParams) {
      return health(service, exchange);
    });
  }
  router.add("GET", "/readyz", [&service](http::Exchange& exchange, http::PathParams) {
    return readyz(service, exchange);
  });
}

}  // namespace flotilla::gateway
