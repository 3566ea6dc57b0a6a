#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "api/chat_chunks.h"
#include "api/engine_request.h"
#include "api/runner_protocol.h"
#include "api/trace_context.h"
#include "base/task.h"
#include "cluster/ticket.h"
#include "gateway/blocking_thread.h"
#include "gateway/chat_answer.h"
#include "gateway/history.h"
#include "gateway/key_ring.h"
#include "gateway/pool_runtime.h"
#include "gateway/request_log.h"
#include "http/message.h"

namespace flotilla::gateway {

// What a replica made of a request.
struct RelayEnd {
  enum class Kind {
    Whole,    // the answer is complete
    Refused,  // the request's own fault: `response` is the client's answer
    Error,    // the request's own end after it began (its time is over): `error` goes to the client
    Failed,   // the replica's fault: another one may go on
    ClientGone,
  };
  Kind kind = Kind::Failed;
  http::Response response = {};
  ::flotilla::Error error = {};
};

// Functions, and not braces within a coroutine: g++ 12 destroys such temporaries twice.
RelayEnd ended(RelayEnd::Kind kind, ::flotilla::Error error = {});
RelayEnd failed(::flotilla::Error error);
::flotilla::Error too_early(std::string_view who);

// A chat request on its way to replicas: what is sent to each, and what the client has of the
// answer.
struct ChatJob {
  std::string body;  // the client's, as it came
  // The same for engines that are not ours, once one of them may get it.
  std::optional<api::EngineRequest> for_engines;
  BlockingThread* text = nullptr;  // makes it where that is known late
  std::string alias;               // as the client wrote it
  std::string request_id;
  std::string cache_group;
  std::string_view cache_secret;    // of cache_salt()
  bool cache_shared = false;        // is_cache_shared()
  api::TraceContext trace_context;  // passed on
  std::int64_t created_unix_s = 0;
  std::uint64_t seed = 0;
  Pace pace;             // tells the history of the tokens
  KeyRing::Lease lease;  // of the API key, for as long as the request lives
  bool include_usage = false;
  Instant arrived{};
  double queued_ms = 0;               // until it last got a place
  Instant deadline = Instant::max();  // to the first token
  Instant ends = Instant::max();      // of the whole answer, where the client says so
  bool stream = false;
  bool embeddings = false;  // vectors are asked for: one whole body

  std::shared_ptr<RequestTrace> trace;

  // What the client has, or the assembler for it.
  api::Resume shown;
  bool begun = false;    // a chunk was shown
  cluster::Usage usage;  // so far
};

// The client's trace context, for the replica.
void add_trace(http::Headers& headers, const api::TraceContext& context);

// Our runner's bytes pass untouched but for the comments that tell the tokens, which are kept so
// that another runner can go on where this one was lost.
Awaitable<RelayEnd> relay_runner(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                 Upstream& upstream, const std::function<void()>& on_first_byte,
                                 const Clock& clock);

// A foreign engine's stream is parsed event by event: model and id become ours, usage is hidden
// from a client that did not ask. It cannot go on where another one was lost: an answer of which
// the client has a part has failed, another begins anew.
Awaitable<RelayEnd> relay_foreign(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                  Upstream& upstream, const std::function<void()>& on_first_byte,
                                  const Clock& clock);

// A runner keeps a request's deadlines; for an engine, which knows none, they are kept here.
class EnginePatience {
 public:
  EnginePatience(const ChatJob& job, const Clock& clock, Duration silence_max)
      : job_(job), clock_(clock), silence_max_(silence_max) {}

  void spoke() { spoke_ = true; }  // it has told its first token
  // How long it may say nothing from here on: never more than is left.
  Duration left() const;
  bool over() const { return clock_.now() >= until(); }
  // The request's end, its time being over; and that or an engine's failure.
  RelayEnd late() const;
  RelayEnd end(::flotilla::Error error) const;

 private:
  Instant until() const { return spoke_ ? job_.ends : std::min(job_.deadline, job_.ends); }

  const ChatJob& job_;
  const Clock& clock_;
  const Duration silence_max_;
  bool spoke_ = false;
};

// What a foreign engine is asked; `target` is below its own /v1.
http::Request foreign_request(const ChatJob& job, const api::ForeignEngine& engine,
                              std::string target, std::string body);
// The body that a foreign engine gets, or why it gets none.
Task<std::string> engine_body_of(ChatJob& job, const api::ForeignEngine& engine);

// Vectors: a whole answer or none, so another replica begins anew.
Awaitable<RelayEnd> relay_embeddings(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                     Upstream& upstream, const std::function<void()>& on_first_byte,
                                     const Clock& clock);

// What a runner is sent: the client's body, and who asks.
http::Request runner_request(const ChatJob& job, const LaunchRuntime& place, Instant now);

// The whole of a refusal's body, at most 1 MiB, and what it means: a status that says the request
// is at fault is passed on, any other is the replica's failure.
Awaitable<RelayEnd> read_refusal(http::ClientStream& stream);
// What an engine says may hold the key that it was asked with: that is not shown on.
void hide(std::string& text, std::string_view secret);
// A foreign engine's, in our form: its key, its model's name and its paths are no client's doing.
// What it says of our key for it is left out.
RelayEnd foreign_refusal(RelayEnd refusal, std::string_view api_key);

}  // namespace flotilla::gateway
