#pragma once

#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/task.h"
#include "cli/flags.h"
#include "client/admin_client.h"

// What the commands that talk to a running server share: where it is, who asks, and one way to
// wait.
namespace flotilla::cli {

struct ServerAccess {
  std::string url = "http://127.0.0.1:8000";
  std::string token_file;
};

// --server (FLOTILLA_SERVER) and --admin-token-file (FLOTILLA_ADMIN_TOKEN_FILE).
void add_server_flags(const App& command, ServerAccess& access);

// A connection to that server's administration, and what its coroutines run on.
class Admin {
 public:
  Admin(http::Endpoint endpoint, std::string token)
      : client_(io_.get_executor(), std::move(endpoint), std::move(token)) {}
  boost::asio::io_context& io() { return io_; }
  client::AdminClient& client() { return client_; }

 private:
  boost::asio::io_context io_;
  client::AdminClient client_;
};
// An error names the flag that is wrong; whether the server is there shows in the first call.
Result<std::unique_ptr<Admin>> open_admin(const ServerAccess& access);

// Prints "flotilla: …" on stderr; 1.
int tell_error(const Error& error);

// Runs one coroutine to its end on this thread.
template <class T>
Result<T> wait_for(boost::asio::io_context& io, Task<T> task) {
  std::optional<Result<T>> out;
  boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr thrown, Result<T> result) {
    if (!thrown) out = std::move(result);
    io.stop();
  });
  io.run();
  io.restart();
  if (!out) return fail(Code::Internal, "the command ended before its work");
  return std::move(*out);
}

}  // namespace flotilla::cli
