#include "client/chat_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/error_body.h"
#include "api/json_text.h"
#include "api/read_answers.h"
#include "http/sse.h"

namespace flotilla::client {
namespace {

constexpr std::int64_t kErrorBodyMax = 64 << 10;

http::Headers headers(const std::string& key) {
  http::Headers out{{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  if (!key.empty()) out.set("Authorization", "Bearer " + key);
  return out;
}

void see_event(StreamSeen& seen, std::string_view data, bool& finished, Instant now) {
  if (data == "[DONE]") {
    seen.whole = finished;
    return;
  }
  const auto event = api::read_chat_event(data);
  if (!event) {
    seen.error = event.error().message;
    return;
  }
  if (!event->text.empty()) {
    seen.pieces.push_back(now);
    seen.text += event->text;
  }
  if (!event->finish_reason.empty()) finished = true;
  if (!event->node.empty()) seen.node = event->node;
  if (event->has_usage) {
    seen.prompt_tokens = event->usage.prompt_tokens;
    seen.cached_tokens = event->usage.cached_tokens;
    seen.completion_tokens = event->usage.completion_tokens;
  }
}

Awaitable<void> read_error(http::ClientStream& stream, StreamSeen& seen, Duration limit) {
  std::string body;
  while (body.size() < kErrorBodyMax) {
    const auto bytes = co_await stream.read(limit);
    if (!bytes || bytes->empty()) break;
    body += *bytes;
  }
  seen.error =
      fmt::format("{} {}", stream.status(), api::parse_error_body(stream.status(), body).message);
}

}  // namespace

http::Request chat_request(const ChatAsk& ask) {
  http::Request request;
  request.method = "POST";
  request.target = "/v1/chat/completions";
  request.headers = headers(ask.key);
  // A connection of its own: one that a server is about to close would count as its failure.
  request.headers.set("Connection", "close");
  request.body = fmt::format(
      R"({{"model":{},"messages":[{}{{"role":"user","content":{}}}],)"
      R"({}"temperature":0.7,"seed":{},"ignore_eos":true,"stream":true,)"
      R"("stream_options":{{"include_usage":true}}}})",
      api::json_string(ask.model), ask.past, api::json_string(ask.content),
      ask.max_tokens > 0 ? fmt::format(R"("max_tokens":{},)", ask.max_tokens) : "", ask.seed);
  return request;
}

Awaitable<void> read_answer(http::Client& client, http::Request request, Duration limit,
                            const Clock& clock, StreamSeen& seen, const bool* enough) {
  seen.sent = clock.now();
  auto stream = co_await client.open(std::move(request), limit);
  if (!stream) {
    seen.error = stream.error().message;
    co_return;
  }
  if ((*stream)->status() != 200) {
    co_await read_error(**stream, seen, limit);
    co_return;
  }
  http::SseSplitter splitter;
  bool finished = false;
  while (seen.error.empty() && (enough == nullptr || !*enough)) {
    const auto bytes = co_await (*stream)->read(limit);
    if (!bytes) {
      seen.error = bytes.error().message;
      break;
    }
    if (bytes->empty()) break;
    const Instant now = clock.now();
    const bool fits = splitter.feed(*bytes, [&](std::string_view block) {
      const std::string data = http::sse_data(block);
      if (!data.empty()) see_event(seen, data, finished, now);
    });
    if (!fits) seen.error = "an event is longer than 1 MiB";
  }
  if (seen.completion_tokens == 0) {  // no usage came: a piece is a token with every engine known
    seen.completion_tokens = static_cast<std::int64_t>(seen.pieces.size());
  }
}

Task<std::string> find_only_model(http::Client& client, std::string key) {
  http::Request request;
  request.target = "/v1/models";
  request.headers = headers(key);
  const auto answer = co_await client.fetch(std::move(request), std::chrono::seconds(30));
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) co_return fail(api::parse_error_body(answer->status, answer->body));
  const auto models = api::read_ready_models(answer->body);
  if (!models) co_return fail(models.error());
  if (models->empty()) {
    co_return fail(Code::NotFound, "no model is ready there; load one, or wait for it");
  }
  if (models->size() > 1) {
    co_return fail(Code::Conflict,
                   fmt::format("several models are ready, name one with --model: {}",
                               fmt::join(*models, " ")));
  }
  co_return models->front();
}

}  // namespace flotilla::client
