#include <fmt/format.h>

#include "api/runner_protocol.h"
#include "api/tokens.h"
#include "forms/form_routes.h"
#include "gateway/key_use.h"
#include "gateway/parse_body.h"
#include "gateway/routes.h"

// The API's forms beside chat completions, and what is asked of any one replica without waiting for
// a place in it: words and counts.
namespace flotilla::gateway {
namespace {

using http::Exchange;
using http::PathParams;

constexpr std::chrono::seconds kAnswerLimit{60};

// Tools that know one server only name no model: the one that is there.
std::shared_ptr<PoolRuntime> find_pool_for(const Control& control, const std::string& model) {
  if (model.empty() && control.pools().size() == 1) return control.pools().front();
  return control.find_pool_for(model);
}

// What a replica is asked, and whose question it is: no cache group's work has all of a runner's
// threads for text.
struct Question {
  const char* path = "";
  std::string alias;
  std::string cache_group;
  std::string body;
};

http::Request replica_request(const Question& question) {
  http::Request request;
  request.method = "POST";
  request.headers.add("Content-Type", "application/json");
  request.target = question.path;
  request.body = question.body;
  request.headers.add(std::string(api::kHeaderProtocol), std::to_string(api::kRunnerProtocol));
  request.headers.add(std::string(api::kHeaderRequestId), make_request_id());
  request.headers.add(std::string(api::kHeaderAlias), question.alias);
  if (!question.cache_group.empty())
    request.headers.add(std::string(api::kHeaderCacheGroup), question.cache_group);
  return request;
}

// A replica's own answer, or the reason why none gave one. What one of them cannot, by its own
// fault, the next one may; but what keeps one busy for too long would do so to all in turn.
Task<http::Response> ask_replicas(std::shared_ptr<PoolRuntime> pool, Question question) {
  const std::string& alias = question.alias;
  const auto launches = pool->serving();
  bool foreign = false;
  for (const auto& launch : launches) {
    foreign = foreign || launch->engine;
    if (launch->engine) continue;
    http::Request request = replica_request(question);
    auto response = co_await launch->client->fetch(std::move(request), kAnswerLimit);
    if (!response && response.error().code == Code::DeadlineExceeded) {
      co_return fail(Code::DeadlineExceeded,
                     fmt::format("\"{}\" gave no answer within {} s; send less at once", alias,
                                 kAnswerLimit.count()));
    }
    if (!response || response->status >= 500) continue;
    http::Response answer = http::json_response(response->status, std::move(response->body));
    co_return answer;
  }
  if (foreign) {
    co_return fail(
        Error{.code = Code::InvalidArgument,
              .message = fmt::format(
                  "\"{}\" is served by another engine, which does not tell its tokens", alias),
              .param = "model",
              .reason = "not_supported_by_engine"});
  }
  co_return fail(Error{.code = Code::Unavailable,
                       .message = fmt::format("no replica of \"{}\" answers", alias),
                       .reason = "no_replica",
                       .retry_after_s = 5});
}

Awaitable<void> ask_one(Service& service, Exchange& exchange, Result<Caller> caller,
                        const char* path) {
  if (!caller) {
    Error error = caller.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  http::Request request = exchange.take_request();
  auto model = co_await parse_body(service.text, request.body, &api::read_model_name);
  if (!model) {
    Error error = model.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  auto pool = find_pool_for(service.control, *model);
  if (!pool || !may_ask(service.keys, *caller, *pool)) {
    Error error = unknown_model(service, *model, *caller);
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  auto use = use_key(service.keys, *caller, *pool, {.tokens = tokens_about(request.body.size())},
                     service.clock.now());
  if (!use) {
    Error error = use.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  Question question;
  question.path = path;
  question.alias = model->empty() ? pool->alias() : *model;
  question.cache_group = std::move(use->cache_group);
  question.body = std::move(request.body);
  auto answer = co_await ask_replicas(std::move(pool), std::move(question));
  if (!answer) {
    Error error = answer.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  for (const auto& [name, value] : use->headers.fields()) answer->headers.set(name, value);
  co_await exchange.respond(std::move(*answer));
}

Awaitable<Result<api::FormRequest>> parse_form(Service& service, forms::ParseWork work) {
  if (work.bytes() <= kParseHere) co_return work();
  co_return co_await service.text.run(std::move(work));
}

Result<std::string> owner_of(Service& service, const http::Request& request) {
  const auto caller = may_enter(service, request);
  if (!caller) return fail(caller.error());
  return caller->owner;
}

api::ServerCard card_of(const Service& service) {
  api::ServerCard card;
  card.version = service.version;
  card.auth = service.keys.empty() ? "none" : "bearer";
  card.body_max_bytes = service.knobs.body_max_bytes;
  card.queue_max = service.knobs.queue_max;
  card.request_deadline_s = service.knobs.request_deadline.count();
  return card;
}

}  // namespace

void add_form_routes(http::Router& router, Service& service) {
  forms::add_form_routes(
      router,
      {.may_use = [&service](const http::Request& request) { return owner_of(service, request); },
       .parse = [&service](forms::ParseWork work) { return parse_form(service, std::move(work)); },
       .chat =
           [&service](Exchange& exchange) {
             return answer_chat(service, exchange, has_entered(service, exchange.request()));
           },
       .count =
           [&service](Exchange& exchange) {
             return ask_one(service, exchange, has_entered(service, exchange.request()),
                            "/runner/count");
           },
       .card = [&service] { return card_of(service); }});
  for (const char* path : {"/tokenize", "/detokenize"}) {
    router.add("POST", path, [&service, path](Exchange& exchange, PathParams) {
      return ask_one(service, exchange, may_enter(service, exchange.request()), path);
    });
  }
}

}  // namespace flotilla::gateway
