#include "forms/translated_exchange.h"

#include "api/error_body.h"

namespace flotilla::forms {
namespace {

// Anthropic's clients read the id by its other name.
void add_request_id(http::Headers& headers) {
  if (const auto id = headers.find("x-request-id")) headers.set("request-id", std::string(*id));
}

}  // namespace

TranslatedExchange::TranslatedExchange(http::Exchange& client, http::Request request,
                                       std::unique_ptr<api::AnswerForm> form, Keep keep)
    : client_(client),
      request_(std::move(request)),
      form_(std::move(form)),
      keep_(std::move(keep)) {}

void TranslatedExchange::keep() {
  if (auto kept = form_->take_kept()) keep_(std::move(*kept));
}

Awaitable<bool> TranslatedExchange::respond(http::Response response) {
  add_request_id(response.headers);
  if (response.status == 200) {
    response.body = form_->answer(response.body);
    keep();
  } else {
    Error error = api::parse_error_body(response.status, response.body);
    response.body = form_->error(error);
  }
  return client_.respond(std::move(response));
}

bool TranslatedExchange::translate(std::string_view bytes, std::string& out) {
  const bool whole = splitter_.feed(bytes, [this, &out](std::string_view block) {
    const std::string data = http::sse_data(block);
    out += data.empty() ? form_->keep_alive() : form_->event(data);
  });
  if (!whole) {
    out += form_->event(api::openai_error_body(
        Error{.code = Code::BadGateway, .message = "a piece of the answer is too long"}));
  }
  keep();
  return whole;
}

Awaitable<bool> TranslatedExchange::start(int status, http::Headers headers,
                                          std::string_view first) {
  add_request_id(headers);
  std::string out;
  const bool whole = translate(first, out);
  const bool taken = co_await client_.start(status, std::move(headers), out);
  co_return taken&& whole;
}

Awaitable<bool> TranslatedExchange::write(std::string_view bytes) {
  std::string out;
  const bool whole = translate(bytes, out);
  // Nothing of this form to say is no sign that the client left.
  if (out.empty()) co_return !client_.client_gone();
  const bool taken = co_await client_.write(out);
  co_return taken&& whole;
}

Awaitable<bool> TranslatedExchange::finish(std::string_view last) {
  std::string out;
  const bool whole = translate(last, out);
  const bool taken = co_await client_.finish(out);
  co_return taken&& whole;
}

}  // namespace flotilla::forms
