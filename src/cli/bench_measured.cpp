#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/server_access.h"
#include "client/chat_stream.h"

namespace flotilla::cli {

Task<Measured> reach_measured(Executor executor, std::string url, std::string model,
                              std::string key) {
  auto endpoint = http::parse_url(url);
  if (!endpoint) co_return fail(endpoint.error());
  if (endpoint->base_path.ends_with("/v1")) {
    endpoint->base_path.resize(endpoint->base_path.size() - 3);
  }
  Measured at;
  at.url = url;
  at.client = std::make_unique<http::Client>(executor, *endpoint);
  at.model = std::move(model);
  if (at.model.empty()) {
    const auto only = co_await client::find_only_model(*at.client, std::move(key));
    if (!only) co_return fail(only.error().code, fmt::format("{}: {}", url, only.error().message));
    at.model = *only;
  }
  co_return at;
}

int run_measurement(const std::function<Task<bool>(Executor)>& start) {
  boost::asio::io_context io;
  const auto well = wait_for<bool>(io, start(io.get_executor()));
  if (!well) return tell_error(well.error());
  return *well ? 0 : 1;
}

}  // namespace flotilla::cli
