#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/usage.h"
#include "base/log.h"
#include "gateway/routes_operator.h"

// Who used how much, by key and by day.
namespace flotilla::gateway {
namespace {

// What a kill of the server may cost of the counts.
constexpr std::chrono::seconds kWriteEvery{5};

Error unknown_value(std::string_view name, std::string_view value, std::string_view choices) {
  return Error{.code = Code::InvalidArgument,
               .message = fmt::format("{} is {}, not \"{}\"", name, choices, value),
               .param = std::string(name)};
}

api::UsageRow row_of(store::StoredUsage stored) {
  return {.key = std::move(stored.key),
          .name = std::move(stored.name),
          .day = stored.day,
          .requests = stored.requests,
          .prompt_tokens = stored.prompt_tokens,
          .cached_tokens = stored.cached_tokens,
          .generated_tokens = stored.generated_tokens};
}

http::Response csv_response(api::UsageBy by, const std::vector<api::UsageRow>& rows) {
  http::Response response;
  response.headers.add("Content-Type", "text/csv; charset=utf-8");
  response.headers.add(
      "Content-Disposition",
      fmt::format("attachment; filename=\"flotilla-usage-by-{}.csv\"", api::to_string(by)));
  response.body = api::usage_csv(by, rows);
  return response;
}

Task<http::Response> show_usage(Service& service, http::Request request, http::PathParams) {
  const std::string wanted = request.query("by").value_or("key");
  const std::string format = request.query("format").value_or("json");
  const auto by = api::parse_usage_by(wanted);
  if (!by) co_return fail(unknown_value("by", wanted, "key or day"));
  if (format != "json" && format != "csv")
    co_return fail(unknown_value("format", format, "json or csv"));
  co_await write_usage(service);  // what is asked for is as of now
  auto stored = co_await service.control.usage(*by);
  if (!stored) co_return fail(stored.error());
  std::vector<api::UsageRow> rows;
  for (store::StoredUsage& one : *stored) rows.push_back(row_of(std::move(one)));
  if (format == "csv") co_return csv_response(*by, rows);
  co_return http::json_response(200, api::usage_json(*by, rows));
}

Awaitable<void> write_often(Service& service) {
  boost::asio::steady_timer timer(service.executor);
  for (;;) {
    timer.expires_after(kWriteEvery);
    const auto [error] = co_await timer.async_wait(kAwait);
    if (error) co_return;
    co_await write_usage(service);
  }
}

}  // namespace

Awaitable<void> write_usage(Service& service) {
  if (service.tally.empty()) co_return;
  const std::vector<store::StoredUsage> taken = service.tally.take();
  auto copy = taken;
  const auto written = co_await service.control.store_usage(std::move(copy));
  if (written) co_return;
  log::error("{}", written.error().message);
  service.tally.put_back(taken);
}

void add_usage_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/usage", show_usage);
  boost::asio::co_spawn(service.executor, write_often(service), boost::asio::detached);
}

}  // namespace flotilla::gateway
