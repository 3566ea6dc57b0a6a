#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ssl/stream.hpp>

#include "base/task.h"
#include "http/body_decoder.h"
#include "http/channel.h"
#include "http/client.h"
#include "http/head.h"

namespace flotilla::http {

// One connection to an endpoint: one request and its answer at a time. Dropping it closes it; to be
// kept while one of its coroutines runs.
class ClientConnection {
 public:
  explicit ClientConnection(Executor executor);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  Task<void> connect(Endpoint endpoint, Instant deadline);
  // All of the bytes.
  Awaitable<Io> write(std::string_view head, std::string_view body, Instant deadline);
  // The next head that is an answer (1xx are skipped).
  Task<ResponseHead> read_head(Instant deadline);
  // What is there of the body, at most 64 KiB; empty when `decoder` is Done.
  Task<std::string> read_body(BodyDecoder& decoder, Duration limit);

  // Bytes of this answer have come.
  bool answered() const { return answered_; }
  // Nothing came since the last answer and the peer is still there.
  bool reusable();
  bool open() const { return channel_ && channel_->open(); }
  // Between answers: no timer keeps the context busy. false: bytes came that nobody asked for.
  bool rest();
  void close();

  Instant rested_at{};

 private:
  using Tls = boost::asio::ssl::stream<Socket&>;

  Task<void> connect_tcp(Endpoint endpoint, Instant deadline);
  Task<void> connect_tls(std::string host, Instant deadline);
  Awaitable<Channel::Read> fill(Duration limit);
  void take_more(BodyDecoder& decoder, std::string& out);

  Executor executor_;
  std::shared_ptr<Channel> channel_;
  std::unique_ptr<Tls> tls_;
  // What was read and not yet used is [used_, filled_) of in_, whose size is that of the buffer.
  std::string_view unused() const { return std::string_view(in_).substr(used_, filled_ - used_); }
  std::string in_;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  bool was_full_ = false;  // the last read filled its buffer
  bool flows_ = false;     // bytes of this answer's body have come
  bool answered_ = false;
  bool closed_ = false;
};

}  // namespace flotilla::http
