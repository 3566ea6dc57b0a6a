#include "cli/server_access.h"

#include <fmt/format.h>

#include "cli/terminal.h"
#include "platform/first_line.h"

namespace flotilla::cli {
namespace {

// The first line of the token file; empty where none is named.
Result<std::string> read_token(const ServerAccess& access) {
  if (access.token_file.empty()) return std::string();
  auto token = platform::read_first_line(access.token_file, [&access] {
    fmt::print(stderr, "flotilla: waiting for the admin token from the pipe {}\n",
               printable(access.token_file));
  });
  if (!token) return fail(token.error().code, "--admin-token-file " + token.error().message);
  return token;
}

}  // namespace

void add_server_flags(const App& command, ServerAccess& access) {
  command.add_option("--server", access.url, "The server to talk to")
      .environment("FLOTILLA_SERVER")
      .show_default();
  command.add_option("--admin-token-file", access.token_file, "File with the server's admin token")
      .environment("FLOTILLA_ADMIN_TOKEN_FILE");
}

Result<std::unique_ptr<Admin>> open_admin(const ServerAccess& access) {
  auto endpoint = http::parse_url(access.url);
  if (!endpoint) return fail(endpoint.error().code, "--server: " + endpoint.error().message);
  auto token = read_token(access);
  if (!token) return fail(token.error());
  return std::make_unique<Admin>(std::move(*endpoint), std::move(*token));
}

int tell_error(const Error& error) {
  fmt::print(stderr, "flotilla: {}\n", printable(error.message, Lines::Kept));
  return 1;
}

}  // namespace flotilla::cli
