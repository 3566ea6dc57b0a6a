#include "api/embeddings.h"
#include "api/error_body.h"
#include "base/numbers.h"
#include "gateway/relay.h"

namespace flotilla::gateway {
namespace {

// A runner says something at least every 10 s; another engine is silent while it computes.
constexpr std::chrono::seconds kSilenceMax{35};
constexpr std::chrono::seconds kForeignSilenceMax{600};
constexpr std::size_t kBytesMax = 128 << 20;

Task<std::string> read_whole(http::ClientStream& stream, Duration silence_max) {
  std::string body;
  for (;;) {
    auto bytes = co_await stream.read(silence_max);
    if (!bytes) co_return fail(bytes.error());
    if (bytes->empty()) co_return body;
    // White space before the JSON says that work goes on.
    if (body.empty()) bytes->erase(0, bytes->find_first_not_of(" \n"));
    body += *bytes;
    if (body.size() > kBytesMax) co_return fail(Code::Internal, "the vectors are too many");
  }
}

}  // namespace

Awaitable<RelayEnd> relay_embeddings(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                     Upstream& upstream, const std::function<void()>& on_first_byte,
                                     const Clock& clock) {
  using Kind = RelayEnd::Kind;
  const UpstreamScope scope(place, upstream);
  const bool foreign = place.engine.has_value();
  const EnginePatience patience(job, clock, kForeignSilenceMax);
  Duration silence_max = foreign ? patience.left() : Duration(kSilenceMax);
  http::Request request;
  if (foreign) {
    auto theirs = co_await engine_body_of(job, *place.engine);
    if (!theirs) co_return ended(Kind::Error, theirs.error());
    request = foreign_request(job, *place.engine, "/embeddings", std::move(*theirs));
  } else {
    request = runner_request(job, place, clock.now());
  }
  auto opened = co_await place.client->open(std::move(request), silence_max, upstream.opening());
  if (!opened) co_return foreign ? patience.end(opened.error()) : failed(opened.error());
  http::ClientStream& stream = **opened;
  upstream.set_stream(&stream);
  if (stream.status() != 200) {
    RelayEnd refusal = co_await read_refusal(stream);
    co_return foreign ? foreign_refusal(std::move(refusal), place.engine->api_key)
                      : std::move(refusal);
  }
  if (foreign) silence_max = patience.left();
  auto body = co_await read_whole(stream, silence_max);
  if (!body) co_return foreign ? patience.end(body.error()) : failed(body.error());
  if (body->empty()) co_return failed(too_early(foreign ? "engine" : "runner"));
  if (body->starts_with("{\"error\"")) {
    RelayEnd end = failed(api::parse_error_body(500, *body));
    if (end.error.reason == "deadline_exceeded") {  // the request's own time was over
      end.kind = Kind::Error;
      end.error.code = Code::DeadlineExceeded;
    }
    co_return end;
  }
  on_first_byte();
  if (foreign) {
    auto read = api::read_foreign_embeddings(*body, job.alias);
    job.usage.prompt_tokens = static_cast<std::uint64_t>(read.prompt_tokens);
    *body = std::move(read.body);
  } else if (const auto told = stream.headers().find(api::kHeaderPromptTokens)) {
    job.usage.prompt_tokens = static_cast<std::uint64_t>(parse_double(*told).value_or(0));
  }
  answer.set_whole(std::move(*body));
  co_return ended(Kind::Whole);
}

}  // namespace flotilla::gateway
