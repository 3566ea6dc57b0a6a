#include <fmt/format.h>

#include "api/error_body.h"
#include "api/foreign.h"
#include "gateway/key_use.h"
#include "gateway/parse_body.h"
#include "gateway/relay.h"
#include "http/sse.h"

namespace flotilla::gateway {
namespace {

// An engine may be silent through a long prefill; its health check finds a hang sooner.
constexpr std::chrono::seconds kSilenceMax{600};

// One answer of an engine. What the client has of it is sent as it comes; what it could not see
// anyway, the role alone or a part of an answer that it gets as a whole, is kept back, so that
// another replica may begin anew.
class ForeignAnswer {
 public:
  ForeignAnswer(ChatJob& job, ChatAnswer& answer, const LaunchRuntime& place, const Clock& clock)
      : job_(job),
        answer_(answer),
        clock_(clock),
        sent_(clock.now()),
        chunks_(
            {.id = "chatcmpl-" + job.request_id, .created = job.created_unix_s, .model = job.alias},
            {.node = place.node.str(), .replica = place.node.str(), .queued_ms = job.queued_ms},
            {.usage = job.include_usage || !job.stream,
             .cached = job.cache_shared || place.engine->salts_cache}) {}

  void take(std::string_view block) {
    const std::string data = http::sse_data(block);
    if (data.empty() || error) return;
    const double elapsed_ms = to_ms(clock_.now() - sent_);
    auto piece = chunks_.rewrite(data, elapsed_ms);
    if (!piece) {
      error = piece.error();
      return;
    }
    if (piece->has_text && pieces_ == 0) chunks_.first_token(job_.queued_ms + elapsed_ms);
    if (piece->chunk.empty()) return;
    if (piece->has_text) {
      job_.pace.tokens(0, 1);  // a piece is a token with every engine known
      job_.trace->shown(++pieces_);
      job_.usage.completion_tokens = pieces_;
      job_.lease.settle(0, pieces_, clock_.now());
    }
    if (!job_.stream) {
      whole_.push_back(std::move(piece->chunk));
    } else {
      out += http::sse_event(piece->chunk);
      job_.begun = job_.begun || piece->has_text;
    }
  }

  // The end of a whole answer.
  Result<void> end() {
    if (!chunks_.complete()) return fail(too_early("engine"));
    for (const std::string& chunk : whole_)
      if (auto fed = answer_.assemble(chunk); !fed) return fed;
    const api::Usage usage = chunks_.usage();
    if (usage.prompt_tokens == 0) return {};  // it tells no counts
    job_.usage.prompt_tokens = static_cast<std::uint64_t>(usage.prompt_tokens);
    job_.usage.completion_tokens = static_cast<std::uint64_t>(usage.completion_tokens);
    job_.usage.cached_tokens = static_cast<std::uint64_t>(usage.cached_tokens);
    return {};
  }

  bool speaks() const { return pieces_ > 0; }
  bool done() const { return chunks_.done(); }
  std::string out;  // for the client
  std::optional<Error> error;

 private:
  ChatJob& job_;
  ChatAnswer& answer_;
  const Clock& clock_;
  const Instant sent_;
  api::ForeignChunks chunks_;
  std::vector<std::string> whole_;
  std::uint64_t pieces_ = 0;  // about as many as tokens
};

}  // namespace

void hide(std::string& text, std::string_view secret) {
  constexpr std::string_view kHidden = "(hidden)";
  if (secret.empty()) return;
  for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += kHidden.size())
    text.replace(at, secret.size(), kHidden);
}

RelayEnd foreign_refusal(RelayEnd refusal, std::string_view api_key) {
  using Kind = RelayEnd::Kind;
  hide(refusal.error.message, api_key);
  const int status = refusal.response.status;
  // Our key, our name for the model: not the client's fault. 404 is also what mlx_lm.server says of
  // whatever went wrong with a request.
  if (status == 401 || status == 403) refusal.kind = Kind::Failed;
  if (refusal.kind != Kind::Refused) return refusal;
  if (status == 404) refusal.error.code = Code::InvalidArgument;
  refusal.response = http::json_response(api::http_status(refusal.error.code),
                                         api::openai_error_body(refusal.error));
  return refusal;
}

Duration EnginePatience::left() const {
  if (until() == Instant::max()) return silence_max_;
  return std::clamp(until() - clock_.now(), Duration::zero(), silence_max_);
}

RelayEnd EnginePatience::late() const {
  Error error{.code = Code::DeadlineExceeded,
              .message = "no token came within the time that a request has for it",
              .reason = "deadline_exceeded"};
  if (until() == job_.ends) {
    error.message = fmt::format("the answer was not complete within timeout_s = {} s",
                                to_s(job_.ends - job_.arrived));
    error.param = "timeout_s";
  }
  return ended(RelayEnd::Kind::Error, std::move(error));
}

RelayEnd EnginePatience::end(Error error) const {
  return over() ? late() : failed(std::move(error));
}

http::Request foreign_request(const ChatJob& job, const api::ForeignEngine& engine,
                              std::string target, std::string body) {
  http::Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.headers.add("Content-Type", "application/json");
  if (!engine.api_key.empty()) request.headers.add("Authorization", "Bearer " + engine.api_key);
  add_trace(request.headers, job.trace_context);
  request.body = std::move(body);
  return request;
}

Task<std::string> engine_body_of(ChatJob& job, const api::ForeignEngine& engine) {
  if (!job.for_engines) {
    // Its pool had no engines when the request came, and now has.
    BodyReader reader{.asked = job.embeddings ? Asked::Vectors : Asked::Chat,
                      .engines = {.names = {}, .all_but = true}};
    auto read = co_await parse_body(*job.text, job.body, std::move(reader));
    if (!read) co_return fail(read.error());
    job.for_engines = std::move(read->for_engines);
  }
  if (auto can = api::check_engine_can(*job.for_engines, engine.lacks, engine.name); !can)
    co_return fail(can.error());
  const bool salted = engine.salts_cache && !job.cache_group.empty();
  co_return api::engine_body(*job.for_engines, engine,
                             salted ? cache_salt(job.cache_secret, job.cache_group) : "");
}

Awaitable<RelayEnd> relay_foreign(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                  Upstream& upstream, const std::function<void()>& on_first_byte,
                                  const Clock& clock) {
  using Kind = RelayEnd::Kind;
  const UpstreamScope scope(place, upstream);
  auto body = co_await engine_body_of(job, *place.engine);
  if (!body) co_return ended(Kind::Error, body.error());
  http::Request request =
      foreign_request(job, *place.engine, "/chat/completions", std::move(*body));
  // llama-server says that it keeps a connection and closes it after a stream: the next request on
  // it would be lost. A new one costs nothing but where TLS is spoken.
  if (!place.client->endpoint().tls) request.headers.add("Connection", "close");
  ForeignAnswer reading(job, answer, place, clock);
  EnginePatience patience(job, clock, kSilenceMax);
  auto opened =
      co_await place.client->open(std::move(request), patience.left(), upstream.opening());
  if (!opened) co_return patience.end(opened.error());
  http::ClientStream& stream = **opened;
  upstream.set_stream(&stream);
  if (stream.status() != 200) {
    if (stream.status() == 404) ++place.not_found;
    RelayEnd refusal = co_await read_refusal(stream);
    co_return foreign_refusal(std::move(refusal), place.engine->api_key);
  }

  http::SseSplitter splitter;
  bool first = true;
  while (!reading.done()) {
    if (patience.over()) co_return patience.late();
    auto bytes = co_await stream.read(patience.left());
    if (!bytes) co_return patience.end(bytes.error());
    place.heard = clock.now();
    if (bytes->empty() ||
        !splitter.feed(*bytes, [&reading](std::string_view block) { reading.take(block); }))
      break;
    if (first && reading.speaks()) {
      on_first_byte();
      patience.spoke();
      place.not_found = 0;
      first = false;
    }
    if (job.begun && !reading.out.empty()) {
      const bool sent = co_await answer.relay(reading.out);
      if (!sent) co_return ended(Kind::ClientGone);
      reading.out.clear();
    }
    if (reading.error) {
      hide(reading.error->message, place.engine->api_key);
      co_return failed(*reading.error);
    }
  }
  const auto whole = reading.end();
  if (!whole) co_return failed(whole.error());
  place.not_found = 0;
  co_return ended(Kind::Whole);
}

}  // namespace flotilla::gateway
