#include "gateway/gateway.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/error_body.h"
#include "base/log.h"
#include "forms/form_routes.h"
#include "gateway/admit_body.h"
#include "gateway/front.h"
#include "gateway/history.h"
#include "gateway/metrics.h"
#include "gateway/routes.h"
#include "gateway/transfers.h"
#include "platform/file_lock.h"
#include "platform/files.h"
#include "platform/first_line.h"
#include "platform/limits.h"
#include "platform/open_files.h"
#include "platform/own_file.h"
#include "platform/process.h"
#include "platform/socket_dir.h"

namespace flotilla::gateway {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

// Of the files that we may open: the store, agents, forwards, streams to replicas.
constexpr int kFilesBeside = 128;
constexpr int kConnectionsMin = 32;

bool is_loopback_address(const std::string& host) {
  return host == "127.0.0.1" || host == "::1" || host == "localhost";
}

std::vector<std::string> admin_hosts(const GatewayOptions& options) {
  std::vector<std::string> hosts = options.admin_hosts;
  if (!is_loopback_address(options.host)) hosts.push_back(options.host);
  return hosts;
}

Result<std::string> read_token(const fs::path& file) {
  if (file.empty()) return std::string();
  const auto line = platform::read_first_line(file, [&file] {
    log::info("waiting for the admin token: the pipe {} has no writer yet, or it is silent",
              file.string());
  });
  if (!line) return fail(Code::InvalidArgument, "the admin token file " + line.error().message);
  std::string token = *line;
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.size() < 8) {
    return fail(Code::InvalidArgument,
                fmt::format("the admin token in {} has {} characters; use at least 8",
                            file.string(), token.size()));
  }
  if (auto ours = platform::check_others_cannot_write(file); !ours) {
    return fail(Code::InvalidArgument, fmt::format("the admin token file {} is not safe: {}",
                                                   file.string(), ours.error().message));
  }
  std::error_code ignored;
  const auto others = fs::perms::group_all | fs::perms::others_all;
  if ((fs::status(file, ignored).permissions() & others) != fs::perms::none) {
    log::warning("the admin token file {} is open to other users of this machine; chmod 600 {}",
                 file.string(), file.string());
  }
  return token;
}

Result<void> check_address(const GatewayOptions& options, const std::string& token,
                           const KeyRing& keys) {
  if (is_loopback_address(options.host)) return {};
  if (token.empty()) {
    return fail(Code::InvalidArgument,
                fmt::format("--host {} opens the server to others: give --admin-token-file too",
                            options.host));
  }
  if (keys.empty() && !options.allow_anonymous) {
    return fail(
        Code::InvalidArgument,
        fmt::format("--host {} opens /v1 to others and there are no API keys: start it on this "
                    "machine alone and make some with `flotilla keys add NAME`, or give "
                    "--allow-anonymous if anyone who reaches it may use it",
                    options.host));
  }
  return {};
}

// Of the largest bodies a key has one at least, and no share is all of the next larger one.
void make_room_for_bodies(http::ServerOptions& options) {
  options.bodies_max_bytes_of_key =
      std::max(options.bodies_max_bytes_of_key, options.body_max_bytes);
  options.bodies_max_bytes_of_network =
      std::max(options.bodies_max_bytes_of_network, 2 * options.bodies_max_bytes_of_key);
  options.bodies_max_bytes =
      std::max(options.bodies_max_bytes, 2 * options.bodies_max_bytes_of_network);
}

// What is made once, at random, and kept in the state directory.
Result<std::string> read_kept(const fs::path& file, int bytes) {
  std::string kept;
  if (std::ifstream in(file); in && std::getline(in, kept) && !kept.empty()) return kept;
  kept = random_hex(bytes);
  std::ofstream out(file);
  std::error_code ignored;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, ignored);
  out << kept << '\n';
  if (!out.flush()) return fail(Code::Internal, fmt::format("{} cannot be written", file.string()));
  return kept;
}

http::Response plain_error(int status, std::string_view message, std::string_view path) {
  const Error error{.code = api::code_of_status(status), .message = std::string(message)};
  if (!path.starts_with("/admin/"))
    return http::json_response(status, forms::error_body_for(path, error));
  http::Response response = http::json_response(status, api::problem_body(error));
  response.headers.set("Content-Type", std::string(api::kProblemContentType));
  return response;
}

Awaitable<void> not_found(http::Exchange& exchange) {
  const std::string path(exchange.request().path());
  Error error{.code = Code::NotFound, .message = fmt::format("there is nothing at {}", path)};
  if (path.starts_with("/admin")) {
    co_await answer_problem(exchange, std::move(error));
  } else {
    http::Response response = plain_error(404, error.message, path);
    co_await exchange.respond(std::move(response));
  }
}

Awaitable<void> method_not_allowed(http::Exchange& exchange, std::string allow) {
  const std::string message =
      fmt::format("{} does not take {}; it takes {}", exchange.request().path(),
                  exchange.request().method, allow);
  http::Response response = plain_error(405, message, exchange.request().path());
  response.headers.set("Allow", allow);
  co_await exchange.respond(std::move(response));
}

// First signal: nothing new, streams get DRAIN_S. Then SIGINT ends the runners; SIGTERM leaves them
// to the agents for AGENT_GRACE_S, so that an upgrade takes them over. Second signal: at once.
Awaitable<void> serve_until_signal(asio::io_context& io, http::Server& server, Service& service) {
  asio::signal_set signals(io, SIGINT, SIGTERM);
  const auto [error, signal] = co_await signals.async_wait(kAwait);
  log::info("{}: draining for up to {} s", platform::signal_name(signal),
            service.knobs.drain.count());
  service.draining = true;
  signals.async_wait([](const boost::system::error_code& again, int) {
    if (!again) std::_Exit(130);
  });
  co_await server.shutdown(service.knobs.drain);
  co_await write_usage(service);
  const auto runners =
      signal == SIGTERM ? nodes::NodeLink::Runners::Keep : nodes::NodeLink::Runners::End;
  co_await service.control.close(runners);
  io.stop();
}

}  // namespace

Result<int> run_gateway(const GatewayOptions& options) {
  const auto token = read_token(options.admin_token_file);
  if (!token) return fail(token.error());
  if (auto made = platform::make_private_dir(options.state_dir); !made) return fail(made.error());
  auto lock = platform::FileLock::acquire(
      options.state_dir / "lock",
      fmt::format("pid {}, port {}", platform::own_pid(), options.port));
  if (!lock && lock.error().code == Code::Conflict)
    return fail(Code::Conflict,
                lock.error().message + "; end that server, or give this one another --state");
  if (!lock) return fail(lock.error());
  // By this agents know our runners as ours.
  const auto state_id = read_kept(options.state_dir / "state-id", 16);
  if (!state_id) return fail(state_id.error());
  const auto cache_secret = read_kept(options.state_dir / "cache-secret", 32);
  if (!cache_secret) return fail(cache_secret.error());
  auto store = store::Store::open(options.state_dir / "state.db");
  if (!store) return fail(store.error());
  if (!store->warning().empty()) log::error("{}", store->warning());
  if (!store->notice().empty()) log::info("{}", store->notice());
  const auto stored = store->settings();
  if (!stored) return fail(stored.error());
  auto settings = Settings::read(
      {.flags = options.knob_flags,
       .environment = [](const char* name) -> const char* { return std::getenv(name); },
       .stored = *stored,
       .file = options.knob_file});
  if (!settings) return fail(settings.error());
  const Knobs& knobs = settings->knobs();

  platform::ignore_hangup();               // until it is waited for
  platform::return_large_blocks(1 << 20);  // bodies and what they are parsed to
  asio::io_context io(1);
  const auto front = Front::make(options);
  if (!front) return fail(front.error());
  SystemClock clock;
  Random random(random_seed());
  History history;
  KeyRing keys;
  UsageTally tally;
  const std::string own_secret = make_secret();
  Guard guard({.admin_token = *token,
               .allow_anonymous = options.allow_anonymous,
               .admin_hosts = admin_hosts(options),
               .admin_by_address = is_any_address(options.host),
               .own_secret = own_secret,
               .sites = options.cors_origins},
              keys);
  Control control({.executor = io.get_executor(),
                   .clock = &clock,
                   .random = &random,
                   .knobs = &knobs,
                   .state_dir = options.state_dir,
                   .state_id = *state_id,
                   .version = options.version,
                   .engines = options.engines},
                  std::move(*store));
  Transfers transfers(io.get_executor(), clock, control);
  Metrics metrics;
  if (auto read = read_stored_keys(control, keys); !read) return fail(read.error());
  if (auto may = check_address(options, *token, keys); !may) return fail(may.error());
  if (!is_loopback_address(options.host) && !(*front)->speaks_tls()) {
    log::warning(
        "--host {} without --tls-cert: keys and answers cross the network in the clear, unless "
        "nothing but a proxy that speaks TLS reaches it",
        options.host);
  }
  RequestLog requests(clock, &metrics);
  Refusals refusals;
  BlockingThread text;
  Service service{.executor = io.get_executor(),
                  .clock = clock,
                  .random = random,
                  .knobs = knobs,
                  .settings = *settings,
                  .control = control,
                  .guard = guard,
                  .keys = keys,
                  .tally = tally,
                  .own_secret = own_secret,
                  .cache_secret = *cache_secret,
                  .transfers = transfers,
                  .history = history,
                  .metrics = metrics,
                  .version = options.version,
                  .endpoint = {},
                  .itself = {},
                  .requests = requests,
                  .refusals = refusals,
                  .text = text};
  http::Router router;
  add_all_routes(router, service);
  add_dashboard_routes(router, service);
  router.on_not_found(not_found);
  router.on_method_not_allowed(method_not_allowed);

  http::ServerOptions server_options;
  server_options.body_max_bytes = knobs.body_max_bytes;
  make_room_for_bodies(server_options);
  // A request in flight has two: its client's and its replica's.
  const int files = platform::raise_open_files_limit();
  server_options.connections_max =
      std::clamp((files - kFilesBeside) / 2, kConnectionsMin, server_options.connections_max);
  server_options.connections_max_of_network = server_options.connections_max / 2;
  server_options.admit_body = [&service, &front](http::Exchange& exchange) {
    return admit_body(service, **front, exchange);
  };
  server_options.error_response = plain_error;
  server_options.trusted_proxies = (*front)->trusted_proxies();
  server_options.request_id = make_request_id;
  http::Server server(io.get_executor(), (*front)->before([&router](http::Exchange& exchange) {
    return router.handle(exchange);
  }),
                      server_options);
  (*front)->equip(server);
  const auto port = server.listen_tcp(options.host, options.port);
  if (!port) return fail(port.error());
  auto itself = listen_to_itself(server, options, *port);
  if (!itself) return fail(itself.error());
  service.itself = std::move(*itself);
  lock->describe(fmt::format("pid {}, port {}", platform::own_pid(), *port));
  const std::string shown_host = host_from_here(options.host);
  const std::string url =
      fmt::format("{}://{}:{}", (*front)->speaks_tls() ? "https" : "http", shown_host, *port);
  service.endpoint = url + "/v1";
  log::info("serving {} (dashboard {}/)", service.endpoint, url);
  std::printf("flotilla: listening on %s\n", url.c_str());
  std::fflush(stdout);

  control.restore();
  asio::co_spawn(io, serve_until_signal(io, server, service), asio::detached);
  asio::co_spawn(io, (*front)->watch_certificate(server), asio::detached);
  io.run();
  return 0;
}

}  // namespace flotilla::gateway
