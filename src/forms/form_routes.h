#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_form.h"
#include "api/server_card.h"
#include "base/task.h"
#include "http/router.h"

// The API forms beside chat completions, as routes around a server's own chat route: the gateway's
// and the runner's are the same.
namespace flotilla::forms {

// A client's body as the chat request that it means; `stored`: of what it said it needs. Any
// thread.
using ParseForm = Result<api::FormRequest> (*)(std::string_view body,
                                               const std::vector<api::KeptAnswer>* stored);

struct ParseWork {
  ParseForm parse = nullptr;
  std::string body = {};
  std::optional<std::vector<api::KeptAnswer>> stored = {};

  std::size_t bytes() const;  // that it looks at
  // A request that needs stored answers has its body in the chat request's place.
  Result<api::FormRequest> operator()();
};

// What the server whose routes they are does for them, on its I/O thread.
struct FormHost {
  // Asked before a body is looked at: whose the request is, and so its kept responses.
  std::function<Result<std::string>(const http::Request& request)> may_use;
  // Runs it where it holds nobody up.
  std::function<Awaitable<Result<api::FormRequest>>(ParseWork work)> parse;
  // Answers a chat request.
  std::function<Awaitable<void>(http::Exchange& exchange)> chat;
  // Answers {"prompt_tokens":N} for a chat request.
  std::function<Awaitable<void>(http::Exchange& exchange)> count;
  // What it says of itself; the routes fill in which APIs there are.
  std::function<api::ServerCard()> card;
};

// Adds POST /v1/messages, /v1/messages/count_tokens, /v1/completions and /v1/responses, and GET and
// DELETE of kept responses and the server's card.
void add_form_routes(http::Router& router, FormHost host);

// The body of an error at `path` in the form of the API that has that path.
std::string error_body_for(std::string_view path, const Error& error);

}  // namespace flotilla::forms
