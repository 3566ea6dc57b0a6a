#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http/channel.h"
#include "http/head.h"
#include "http/server.h"

namespace flotilla::http {

class Connection;

// What the connections of one server share. Outlives the Server while a handler runs.
struct ServerCore {
  Handler handler;
  ServerOptions options;
  std::shared_ptr<SSL_CTX> tls;  // what new TCP connections get; null: plain HTTP
  std::map<std::uint64_t, Connection*> handshakes;  // under way, oldest first
  std::uint64_t handshakes_begun = 0;
  // Whose next request is not whole, oldest first; one cut is out of it at once.
  std::map<std::uint64_t, Connection*> waiting;
  std::uint64_t waits_begun = 0;
  bool draining = false;
  // Bytes of the bodies that are read or answered: of all, of each network, of each key.
  std::map<std::string, std::int64_t> bodies_of;
  std::int64_t date_s = -1;  // second of `date`
  std::string date;          // value of the Date header

  Response error(int status, std::string_view message, std::string_view path = {}) const;
  // The same as bytes, for a connection that gets nothing else any more.
  std::string last_words(int status, std::string_view message, std::string_view path = {}) const;
  // false: none waits. `network` not empty: one of that network's.
  bool cut_oldest_waiting(const std::string& network = {});
};

// One request's answer on a connection, and the eye on its client while the handler runs.
class ServerExchange final : public Exchange, public std::enable_shared_from_this<ServerExchange> {
 public:
  ServerExchange(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel,
                 RequestHead head);

  const Request& request() const override { return head_.request; }
  Request take_request() override { return std::move(head_.request); }
  Awaitable<bool> respond(Response response) override;
  Awaitable<bool> start(int status, Headers headers, std::string_view first) override;
  Awaitable<bool> write(std::string_view bytes) override;
  Awaitable<bool> finish(std::string_view last) override;
  void abort() override;
  bool started() const override { return started_; }
  bool client_gone() const override { return gone_; }
  void on_client_gone(std::function<void()> callback) override;

  // Watches for the client's end; `pipelined`: bytes of its next request are here already.
  void watch(bool pipelined);
  void unwatch();
  // The server ends it: as if the client had gone.
  void cut() { lose_client(); }
  bool finished() const { return finished_; }
  bool keep_alive() const { return keep_alive_; }
  void close_after() { keep_alive_ = false; }

 private:
  enum class Framing { Length, Chunked, UntilClose };

  void watch_errors();
  void on_readable();
  void on_error();
  void lose_client();
  void call_on_gone_soon();
  std::string make_head(int status, const Headers& headers, Framing framing, std::size_t length);
  Awaitable<bool> send(Channel::Parts parts);
  bool took(Io io);
  bool may_send() const { return !gone_ && channel_->open(); }

  const std::shared_ptr<ServerCore> core_;
  const std::shared_ptr<Channel> channel_;
  RequestHead head_;
  const bool bodiless_;  // HEAD
  bool keep_alive_;
  bool chunked_ = false;
  bool no_body_ = false;  // what is written is not sent
  bool started_ = false;
  bool finished_ = false;
  bool gone_ = false;
  std::function<void()> on_gone_;
};

}  // namespace flotilla::http
