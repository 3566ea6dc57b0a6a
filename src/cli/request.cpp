#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct RequestFlags {
  ServerAccess access;
  std::string id;
};

int show(const RequestFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto request =
      wait_for<api::RequestRecord>((*admin)->io(), (*admin)->client().request(flags.id));
  if (!request) return tell_error(request.error());
  const std::string from = request->peer.empty() ? "" : " from " + printable(request->peer);
  fmt::print("{}{}: {}, {} after {:.0f} ms{}\n", printable(request->id), from,
             printable(request->model), printable(request->phase), request->took_ms,
             request->end.empty() ? "" : ": " + printable(request->end));
  fmt::print("{} prompt tokens ({} cached, {} prefill chunks), {} answered\n",
             request->prompt_tokens, request->cached_tokens, request->prompt_passes,
             request->completion_tokens);
  std::vector<std::vector<std::string>> rows{{"MS", "WHAT", ""}};
  for (const api::RequestMoment& moment : request->moments)
    rows.push_back({fmt::format("{:.1f}", moment.at_ms), moment.what, moment.detail});
  fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

void add_request_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<RequestFlags>();
  const auto command =
      app.add_subcommand("request",
                         "Prints the way of one request: queued, dispatched where and "
                         "why, first token, gaps, losses,\n"
                         "end. The last 10,000 are kept.\n\n"
                         "Example:\n  flotilla request req-0123456789abcdef01234567");
  command.add_option("id", flags->id, "The x-request-id of its answer").required();
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = show(*flags); });
}

}  // namespace flotilla::cli
