#include "http/client.h"

#include <algorithm>
#include <vector>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include "http/client_connection.h"

namespace flotilla::http {
namespace {

const SystemClock kClock;

constexpr std::size_t kIdleMax = 64;
// Below the idle timeout of the servers we meet (5 s to 120 s), mostly; the others cost one retry.
constexpr Duration kIdleLimit = std::chrono::seconds(30);

// May be sent twice: the second run has no further effect.
bool replayable(const std::string& method) {
  for (const char* safe : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    if (method == safe) return true;
  }
  return false;
}

std::string host_value(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string host = v6 ? "[" + endpoint.host + "]" : endpoint.host;
  const bool usual = endpoint.port == (endpoint.tls ? 443 : 80);
  if (endpoint.unix_path.empty() && !usual) host += ":" + std::to_string(endpoint.port);
  return host;
}

std::string make_head(const Request& request, const Endpoint& endpoint) {
  std::string out;
  out.reserve(512);
  out.append(request.method).append(" ");
  for (const std::string_view part :
       {std::string_view(endpoint.base_path), std::string_view(request.target)}) {
    // Percent-encoded; what is not must not end the line early.
    for (const char c : part)
      if (static_cast<unsigned char>(c) > ' ' && c != 0x7f) out.push_back(c);
  }
  out.append(" HTTP/1.1\r\n");
  if (!request.headers.find("Host")) append_field(out, "Host", host_value(endpoint));
  for (const auto& [name, value] : request.headers.fields()) append_field(out, name, value);
  const bool has_body = request.method != "GET" && request.method != "HEAD";
  if (has_body || !request.body.empty()) {
    append_field(out, "Content-Length", std::to_string(request.body.size()));
  }
  out.append("\r\n");
  return out;
}

BodyDecoder body_of(const ResponseHead& head, const std::string& method) {
  if (method == "HEAD" || head.status == 204 || head.status == 304) return BodyDecoder::length(0);
  if (head.chunked) return BodyDecoder::chunked();
  if (head.content_length) return BodyDecoder::length(*head.content_length);
  return BodyDecoder::until_close();
}

// Connections that rest between answers; shared by the client and its streams.
class Pool {
 public:
  void put(std::shared_ptr<ClientConnection> connection) {
    if (closed_) return;
    prune();
    if (!connection->rest()) return;
    connection->rested_at = kClock.now();
    if (idle_.size() >= kIdleMax) idle_.erase(idle_.begin());
    idle_.push_back(std::move(connection));
  }

  // The last one used that is still good; null: there is none.
  std::shared_ptr<ClientConnection> take() {
    prune();
    while (!idle_.empty()) {
      std::shared_ptr<ClientConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      if (connection->reusable()) return connection;
    }
    return nullptr;
  }

  void close() {
    closed_ = true;
    idle_.clear();
  }

 private:
  void prune() {
    const Instant now = kClock.now();
    std::erase_if(idle_, [now](const auto& one) { return now - one->rested_at > kIdleLimit; });
  }

  std::vector<std::shared_ptr<ClientConnection>> idle_;
  bool closed_ = false;
};

// An answer that is being read. Shared with the coroutine that reads, so that closing or dropping
// the stream meanwhile ends it instead of pulling the ground from under it.
struct Answer {
  std::shared_ptr<Pool> pool;
  std::shared_ptr<ClientConnection> connection;  // null: the answer is whole, lost or closed
  ResponseHead head;
  BodyDecoder decoder;

  bool whole() const { return decoder.state() == BodyDecoder::State::Done; }
  void close() {
    if (connection) connection->close();
    connection.reset();
  }
  void release_when_whole() {
    if (!whole() || !connection) return;
    const bool again = head.keep_alive && !decoder.ends_with_connection() && connection->open();
    if (again) pool->put(std::move(connection));
    connection.reset();
  }
};

Task<std::string> read_answer(std::shared_ptr<Answer> answer, Duration limit) {
  if (!answer->connection && answer->whole()) co_return std::string();
  if (!answer->connection) co_return fail(Code::Unavailable, "the stream is closed");
  const std::shared_ptr<ClientConnection> connection = answer->connection;
  auto bytes = co_await connection->read_body(answer->decoder, limit);
  if (!bytes) {
    answer->close();
  } else {
    answer->release_when_whole();
  }
  co_return bytes;
}

class PooledStream final : public ClientStream {
 public:
  explicit PooledStream(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {
    answer_->release_when_whole();
  }
  ~PooledStream() override { answer_->close(); }

  int status() const override { return answer_->head.status; }
  const Headers& headers() const override { return answer_->head.headers; }
  void close() override { answer_->close(); }
  Task<std::string> read(Duration limit) override { return read_answer(answer_, limit); }

 private:
  const std::shared_ptr<Answer> answer_;
};

std::unique_ptr<ClientStream> make_stream(std::shared_ptr<Pool> pool,
                                          std::shared_ptr<ClientConnection> connection,
                                          ResponseHead head, BodyDecoder decoder) {
  auto answer = std::make_shared<Answer>(
      Answer{std::move(pool), std::move(connection), std::move(head), decoder});
  return std::make_unique<PooledStream>(std::move(answer));
}

}  // namespace

struct Client::State {
  Executor executor;
  Endpoint endpoint;
  std::shared_ptr<Pool> pool = std::make_shared<Pool>();
};

Client::Client(Executor executor, Endpoint endpoint)
    : state_(std::make_shared<State>(std::move(executor), std::move(endpoint))) {}

Client::~Client() { state_->pool->close(); }

const Endpoint& Client::endpoint() const { return state_->endpoint; }

Task<std::unique_ptr<ClientStream>> Client::open(Request request, Duration limit, Cut* cut) {
  auto stream = co_await open_stream(state_, std::move(request), limit, cut);
  if (cut != nullptr) cut->close_ = nullptr;
  co_return stream;
}

Task<std::unique_ptr<ClientStream>> Client::open_stream(std::shared_ptr<State> state,
                                                        Request request, Duration limit, Cut* cut) {
  const Instant deadline = limit == Duration::max() ? Instant::max() : kClock.now() + limit;
  const std::string head = make_head(request, state->endpoint);
  bool may_retry = replayable(request.method);
  while (true) {
    std::shared_ptr<ClientConnection> connection = state->pool->take();
    const bool pooled = connection != nullptr;
    if (!pooled) connection = std::make_shared<ClientConnection>(state->executor);
    if (cut != nullptr) {
      if (cut->done()) co_return fail(Code::Cancelled, "the request was cut");
      cut->close_ = [weak = std::weak_ptr(connection)] {
        if (const auto one = weak.lock()) one->close();
      };
    }
    if (!pooled) {
      auto connected = co_await connection->connect(state->endpoint, deadline);
      if (!connected) co_return fail(std::move(connected).error());
    }
    const Io sent = co_await connection->write(head, request.body, deadline);
    if (sent == Io::TimedOut) {
      co_return fail(Code::DeadlineExceeded, "the request could not be sent in time");
    }
    if (!connection->open()) co_return fail(Code::Unavailable, "the request was cut");
    // A server that refuses a request may answer and close before it has read all of it.
    auto answer = co_await connection->read_head(deadline);
    if (answer) {
      const BodyDecoder decoder = body_of(*answer, request.method);
      if (sent != Io::Ok) answer->keep_alive = false;
      co_return make_stream(state->pool, std::move(connection), std::move(*answer), decoder);
    }
    const bool stale =
        pooled && !connection->answered() && answer.error().code == Code::Unavailable;
    const auto cancellation = co_await boost::asio::this_coro::cancellation_state;
    const bool cancelled = cancellation.cancelled() != boost::asio::cancellation_type::none;
    if (!stale || !may_retry || cancelled) co_return fail(std::move(answer).error());
    may_retry = false;
  }
}

Task<Response> Client::fetch(Request request, Duration limit, std::int64_t body_max_bytes) {
  const Instant deadline = limit == Duration::max() ? Instant::max() : kClock.now() + limit;
  auto opened = co_await open(std::move(request), limit);
  if (!opened) co_return fail(std::move(opened).error());
  const std::unique_ptr<ClientStream> stream = std::move(*opened);
  Response response{.status = stream->status(), .headers = stream->headers(), .body = {}};
  while (true) {
    const Duration left = deadline == Instant::max() ? limit : deadline - kClock.now();
    auto bytes = co_await stream->read(left);
    if (!bytes) co_return fail(std::move(bytes).error());
    if (bytes->empty()) co_return response;
    if (response.body.size() + bytes->size() > static_cast<std::size_t>(body_max_bytes)) {
      co_return fail(Code::TooLarge,
                     "the answer is larger than " + std::to_string(body_max_bytes) + " bytes");
    }
    response.body += *bytes;
  }
}

}  // namespace flotilla::http
