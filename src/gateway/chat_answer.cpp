#include "gateway/chat_answer.h"

#include "api/error_body.h"
#include "http/sse.h"

namespace flotilla::gateway {

ChatAnswer::ChatAnswer(http::Exchange& exchange, bool stream, http::Headers headers)
    : exchange_(exchange), stream_(stream), headers_(std::move(headers)) {}

void ChatAnswer::add_headers(http::Headers& to) const {
  for (const auto& [name, value] : headers_.fields()) to.set(name, value);
}

Awaitable<bool> ChatAnswer::relay(std::string_view blocks) {
  if (exchange_.started()) return exchange_.write(blocks);
  return start(blocks);
}

Awaitable<bool> ChatAnswer::start(std::string_view blocks) {
  http::Headers headers = http::event_stream_headers();
  add_headers(headers);
  status_ = 200;
  co_return co_await exchange_.start(200, std::move(headers), blocks);
}

Result<void> ChatAnswer::assemble(std::string_view chunk_json) {
  return assembler_.feed(chunk_json);
}

Awaitable<bool> ChatAnswer::keep_alive() {
  if (!stream_) co_return !exchange_.client_gone();
  const std::string comment = http::sse_comment("keep-alive");
  co_return co_await relay(comment);
}

Awaitable<void> ChatAnswer::finish() {
  if (stream_) {
    last_ += api::kSseDone;
    bool open = exchange_.started();
    if (!open) open = co_await relay({});
    if (open) co_await exchange_.finish(last_);
    co_return;
  }
  if (whole_.empty() && !assembler_.complete()) {
    Error error{.code = Code::Internal,
                .message = "the replica ended its answer before it was whole"};
    co_await fail(std::move(error));
    co_return;
  }
  http::Response response = http::json_response(200, whole_.empty() ? assembler_.answer() : whole_);
  add_headers(response.headers);
  status_ = response.status;
  co_await exchange_.respond(std::move(response));
}

Awaitable<void> ChatAnswer::fail(Error error) {
  if (exchange_.started()) {
    last_ += api::openai_error_event(error);
    co_await exchange_.finish(last_);
    co_return;
  }
  http::Response response =
      http::json_response(api::http_status(error.code), api::openai_error_body(error));
  http::add_error_fields(response.headers, error);
  co_await refuse(std::move(response));
}

Awaitable<void> ChatAnswer::refuse(http::Response response) {
  add_headers(response.headers);
  status_ = response.status;
  co_await exchange_.respond(std::move(response));
}

}  // namespace flotilla::gateway
