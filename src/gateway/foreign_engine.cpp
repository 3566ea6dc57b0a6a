#include <fmt/format.h>

#include "api/error_body.h"
#include "api/foreign.h"
#include "gateway/relay.h"
#include "http/sse.h"

namespace flotilla::gateway {
namespace {

// An engine may be silent through a long prefill; its health check finds a hang sooner.
constexpr std::chrono::seconds kSilenceMax{120};

}  // namespace

Awaitable<RelayEnd> relay_foreign(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                  Upstream& upstream, const std::function<void()>& on_first_byte,
                                  const Clock& clock) {
  using Kind = RelayEnd::Kind;
  const UpstreamScope scope(place, upstream);
  http::Request request;
  request.method = "POST";
  request.target = "/chat/completions";
  request.headers.add("Content-Type", "application/json");
  if (!place.engine->api_key.empty())
    request.headers.add("Authorization", "Bearer " + place.engine->api_key);
  add_trace(request.headers, job.trace_context);
  auto body = api::foreign_chat_body(job.body, place.engine->upstream_model);
  if (!body) {
    RelayEnd end = ended(Kind::Error);
    end.error = body.error();
    co_return end;
  }
  request.body = std::move(*body);

  const Instant sent = clock.now();
  auto opened = co_await place.client->open(std::move(request), kSilenceMax, upstream.opening());
  if (!opened) co_return failed(opened.error());
  http::ClientStream& stream = **opened;
  upstream.set_stream(&stream);
  if (stream.status() != 200) {
    RelayEnd refusal = co_await read_refusal(stream);
    co_return refusal;
  }

  api::ForeignChunks chunks(
      {.id = "chatcmpl-" + job.request_id, .created = job.created_unix_s, .model = job.alias},
      {.node = place.node.str(), .replica = place.node.str(), .queued_ms = job.queued_ms},
      job.include_usage || !job.stream);
  http::SseSplitter splitter;
  std::string out;
  std::uint64_t pieces = 0;  // about as many as tokens
  std::optional<Error> error;
  const auto take = [&](std::string_view block) {
    const std::string data = http::sse_data(block);
    if (data.empty() || error) return;
    if (!job.begun && chunks.is_content(data))
      chunks.first_token(job.queued_ms + to_ms(clock.now() - sent));
    auto chunk = chunks.rewrite(data, to_ms(clock.now() - sent));
    if (!chunk) {
      error = chunk.error();
      return;
    }
    if (chunk->empty()) return;
    job.pace.tokens(0, 1);  // a piece is a token with every engine known
    job.begun = true;
    job.trace->shown(++pieces);
    job.usage.completion_tokens = pieces;
    if (job.stream) {
      out += http::sse_event(*chunk);
    } else if (auto fed = answer.assemble(*chunk); !fed) {
      error = fed.error();
    }
  };
  bool first = true;
  for (;;) {
    auto bytes = co_await stream.read(kSilenceMax);
    if (!bytes) co_return failed(bytes.error());
    if (bytes->empty() || !splitter.feed(*bytes, take)) break;
    if (first && job.begun) {
      on_first_byte();
      first = false;
    }
    if (!out.empty()) {
      const bool sent = co_await answer.relay(out);
      if (!sent) co_return ended(Kind::ClientGone);
      out.clear();
    }
    if (error) co_return failed(*error);
    if (chunks.done()) break;
  }
  if (!chunks.complete()) {
    co_return failed(too_early("engine"));
  }
  const api::Usage usage = chunks.usage();
  if (usage.prompt_tokens == 0) co_return ended(Kind::Whole);  // it tells no counts
  job.usage.prompt_tokens = static_cast<std::uint64_t>(usage.prompt_tokens);
  job.usage.completion_tokens = static_cast<std::uint64_t>(usage.completion_tokens);
  job.usage.cached_tokens = static_cast<std::uint64_t>(usage.cached_tokens);
  co_return ended(Kind::Whole);
}

}  // namespace flotilla::gateway
