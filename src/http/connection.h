#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/body_decoder.h"
#include "http/body_share.h"
#include "http/exchange.h"

namespace flotilla::http {

// Who connected, and how.
struct Peer {
  std::string address = "unix";
  std::string network = {};  // by which its connections are bounded; empty: they are not
  bool loopback = true;
  std::shared_ptr<SSL_CTX> tls = nullptr;  // set: TLS with this
};

// One accepted connection: its requests one after the other, each read whole before the handler
// runs.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> core, Socket socket, Peer peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Until the connection is closed. The caller keeps it alive.
  Awaitable<void> serve();
  // No request is being read or answered.
  bool idle() const { return idle_; }
  const Peer& peer() const { return peer_; }
  // Closes it; a running handler is told that its client is gone.
  void cut();
  // Closes it for the sake of another; who is sending a body is told so.
  void give_way();

 private:
  Awaitable<bool> begin_tls();
  void set_peer(Request& request) const;
  Awaitable<bool> read_request(RequestHead& head);
  Awaitable<bool> read_head(RequestHead& head);
  Awaitable<bool> read_body(RequestHead& head);
  Awaitable<std::optional<BodyPermit>> admit_body(RequestHead& head);
  std::optional<HeadError> check_length(const RequestHead& head, const BodyPermit& permit);
  Awaitable<std::optional<HeadError>> receive_body(BodyDecoder& decoder, RequestHead& head,
                                                   const BodyPermit& permit);
  HeadError no_room(BodyShare::Room room, const BodyPermit& permit) const;
  Awaitable<Io> fill(std::size_t bytes, Instant deadline);
  Awaitable<void> refuse(HeadError error, std::string path);
  Awaitable<void> answer(RequestHead head);
  Awaitable<void> linger();

  const std::shared_ptr<ServerCore> core_;
  const std::shared_ptr<Channel> channel_;
  const Peer peer_;
  std::string in_;  // read and not yet used
  bool idle_ = true;
  bool first_ = true;
  std::shared_ptr<ServerExchange> exchange_;  // while a handler runs
  std::unique_ptr<BodyShare> body_;           // of the request that is read or answered
  std::optional<std::string> body_for_;       // the path that a body is being read for
};

}  // namespace flotilla::http
