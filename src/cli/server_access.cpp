#include "cli/server_access.h"

#include <fstream>

#include <fmt/format.h>

#include "cli/terminal.h"

namespace flotilla::cli {
namespace {

// The first line of the token file; empty where none is named.
Result<std::string> read_token(const ServerAccess& access) {
  std::string token;
  if (access.token_file.empty()) return token;
  std::ifstream file(access.token_file);
  if (!std::getline(file, token) || token.empty()) {
    return fail(
        Code::InvalidArgument,
        fmt::format("--admin-token-file {}: no token can be read there", access.token_file));
  }
  if (token.ends_with('\r')) token.pop_back();
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
