#include "forms/form_routes.h"

#include <fmt/format.h>

#include "api/anthropic.h"
#include "api/completions.h"
#include "api/error_body.h"
#include "api/kept_items.h"
#include "api/raw_prompts.h"
#include "api/responses.h"
#include "forms/response_store.h"
#include "forms/translated_exchange.h"

namespace flotilla::forms {
namespace {

using http::Exchange;
using http::PathParams;

constexpr std::size_t kNeededBytesMax = 32 << 20;

// What the routes of one server share.
struct Forms {
  FormHost host;
  ResponseStore kept;
};
using Shared = std::shared_ptr<Forms>;

// One of the forms: how its requests are read, and which of the host's routes answers them.
struct Form {
  const char* path;
  ParseForm parse;
  std::function<Awaitable<void>(Exchange&)> FormHost::* route;
};

// Of a form that names no stored answers.
template <Result<api::FormRequest> (*parse)(std::string_view body)>
Result<api::FormRequest> parse_alone(std::string_view body, const std::vector<api::KeptAnswer>*) {
  return parse(body);
}

const Form kForms[] = {
    {"/v1/messages", parse_alone<api::parse_messages_request>, &FormHost::chat},
    {"/v1/messages/count_tokens", parse_alone<api::parse_count_request>, &FormHost::count},
    {"/v1/completions", parse_alone<api::parse_completion_request>, &FormHost::chat},
    {"/v1/responses", api::parse_responses_request, &FormHost::chat},
};

Awaitable<void> refuse(Exchange& exchange, const char* path, Error error) {
  http::Response response =
      http::json_response(api::http_status(error.code), error_body_for(path, error));
  http::add_error_fields(response.headers, error);
  co_await exchange.respond(std::move(response));
}

Error unknown_response(std::string_view id, const char* param) {
  return Error{.code = param[0] == '\0' ? Code::NotFound : Code::InvalidArgument,
               .message = fmt::format("there is no response \"{}\": it was not stored, or the "
                                      "server has forgotten it since",
                                      id.substr(0, 200)),
               .param = param,
               .reason = param[0] == '\0' ? "not_found" : "previous_response_not_found"};
}

// Puts the messages of the answer that it goes on from before its own.
Result<void> follow(ResponseStore& kept, const std::string& owner, api::FormRequest& request) {
  if (request.previous.empty()) return {};
  const api::KeptAnswer* earlier = kept.find(owner, request.previous);
  if (earlier == nullptr) return fail(unknown_response(request.previous, "previous_response_id"));
  request.chat.insert(request.earlier_at, earlier->messages);
  request.answer->follow(*earlier);
  return {};
}

// What is kept of the answers that a request needs: who parses it names what is not. TooLarge: more
// than a request itself may hold.
Result<std::vector<api::KeptAnswer>> find_needed(ResponseStore& kept, const std::string& owner,
                                                 const std::vector<std::string>& ids) {
  std::size_t bytes = 0;
  std::vector<api::KeptAnswer> out;
  for (const std::string& id : ids) {
    const api::KeptAnswer* found = kept.find(owner, id);
    if (found == nullptr) continue;
    bytes += found->body.size() + found->input.size();
    if (bytes > kNeededBytesMax) {
      return fail(Error{.code = Code::TooLarge,
                        .message = fmt::format("the stored responses whose items the input names "
                                               "have more than {} bytes; name fewer of them",
                                               kNeededBytesMax),
                        .param = "input"});
    }
    out.push_back({.id = found->id, .messages = {}, .body = found->body, .input = found->input});
  }
  return out;
}

// As the chat request that it is, once it has the stored answers that it needs.
Awaitable<Result<api::FormRequest>> parse_request(Shared forms, std::string owner, ParseWork work) {
  const ParseForm parse = work.parse;
  Result<api::FormRequest> first = co_await forms->host.parse(std::move(work));
  if (!first || first->needs.empty()) co_return first;
  auto needed = find_needed(forms->kept, owner, first->needs);
  if (!needed) {
    Error error = needed.error();
    co_return fail(std::move(error));
  }
  ParseWork again{.parse = parse, .body = std::move(first->chat), .stored = std::move(*needed)};
  Result<api::FormRequest> whole = co_await forms->host.parse(std::move(again));
  co_return whole;
}

Awaitable<void> serve(Shared forms, Exchange& exchange, const Form& form) {
  const auto owner = forms->host.may_use(exchange.request());
  if (!owner) {
    Error error = owner.error();
    co_await refuse(exchange, form.path, std::move(error));
    co_return;
  }
  http::Request request = exchange.take_request();
  ParseWork work{.parse = form.parse, .body = std::move(request.body)};
  Result<api::FormRequest> parsed = co_await parse_request(forms, *owner, std::move(work));
  if (parsed) {
    if (auto followed = follow(forms->kept, *owner, *parsed); !followed)
      parsed = fail(followed.error());
  }
  if (!parsed) {
    Error error = parsed.error();
    co_await refuse(exchange, form.path, std::move(error));
    co_return;
  }
  request.body = std::move(parsed->chat);
  auto keep = [forms, owner = *owner](api::KeptAnswer answer) {
    forms->kept.put(owner, std::move(answer));
  };
  TranslatedExchange inner(exchange, std::move(request), std::move(parsed->answer),
                           std::move(keep));
  co_await (forms->host.*form.route)(inner);
}

enum class Show { Body, Items, Delete };

// What a kept answer is shown as.
Result<std::string> shown(const api::KeptAnswer& kept, const http::Request& request, Show what) {
  const auto query = [&request](std::string_view name) { return request.query(name); };
  if (what == Show::Items) {
    const auto asked = api::read_items_asked(query);
    if (!asked) return fail(asked.error());
    return api::input_items_json(kept, *asked);
  }
  if (what == Show::Delete) return api::deleted_response_json(kept.id);
  if (auto fits = api::check_response_query(query); !fits) return fail(fits.error());
  return kept.body;
}

Awaitable<void> show_kept(Shared forms, Exchange& exchange, std::string id, Show what) {
  const auto owner = forms->host.may_use(exchange.request());
  if (!owner) {
    Error error = owner.error();
    co_await refuse(exchange, "/v1/responses", std::move(error));
    co_return;
  }
  const api::KeptAnswer* kept = forms->kept.find(*owner, id);
  if (kept == nullptr) {
    Error error = unknown_response(id, "");
    co_await refuse(exchange, "/v1/responses", std::move(error));
    co_return;
  }
  Result<std::string> body = shown(*kept, exchange.request(), what);
  if (!body) {
    Error error = body.error();
    co_await refuse(exchange, "/v1/responses", std::move(error));
    co_return;
  }
  if (what == Show::Delete) forms->kept.erase(*owner, id);
  http::Response response = http::json_response(200, std::move(*body));
  co_await exchange.respond(std::move(response));
}

Awaitable<void> show_card(Shared forms, Exchange& exchange) {
  if (auto may = forms->host.may_use(exchange.request()); !may) {
    Error error = may.error();
    co_await refuse(exchange, "", std::move(error));
    co_return;
  }
  api::ServerCard card = forms->host.card();
  card.apis = {"/v1/chat/completions", "/v1/models", "/v1/embeddings", "/tokenize", "/detokenize"};
  for (const Form& form : kForms) card.apis.emplace_back(form.path);
  card.choices_max = api::kRawChoicesMax;
  http::Response response = http::json_response(200, api::to_json(card));
  co_await exchange.respond(std::move(response));
}

}  // namespace

std::size_t ParseWork::bytes() const {
  std::size_t sum = body.size();
  if (!stored) return sum;
  for (const api::KeptAnswer& answer : *stored) sum += answer.body.size() + answer.input.size();
  return sum;
}

Result<api::FormRequest> ParseWork::operator()() {
  Result<api::FormRequest> parsed = parse(body, stored ? &*stored : nullptr);
  if (parsed && !parsed->needs.empty()) parsed->chat = std::move(body);
  return parsed;
}

std::string error_body_for(std::string_view path, const Error& error) {
  return path == "/v1/messages" || path.starts_with("/v1/messages/")
             ? api::anthropic_error_body(error)
             : api::openai_error_body(error);
}

void add_form_routes(http::Router& router, FormHost host) {
  const auto forms = std::make_shared<Forms>();
  forms->host = std::move(host);
  for (const Form& form : kForms) {
    router.add("POST", form.path, [forms, &form](Exchange& exchange, PathParams) {
      return serve(forms, exchange, form);
    });
  }
  const auto add_kept = [&](const char* method, const char* pattern, Show what) {
    router.add(method, pattern, [forms, what](Exchange& exchange, PathParams params) {
      return show_kept(forms, exchange, params["id"], what);
    });
  };
  router.add("GET", "/.well-known/inference-engine.json",
             [forms](Exchange& exchange, PathParams) { return show_card(forms, exchange); });
  add_kept("GET", "/v1/responses/{id}", Show::Body);
  add_kept("DELETE", "/v1/responses/{id}", Show::Delete);
  add_kept("GET", "/v1/responses/{id}/input_items", Show::Items);
}

}  // namespace flotilla::forms
