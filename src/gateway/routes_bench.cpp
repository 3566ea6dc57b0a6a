#include <memory>

#include <fmt/format.h>

#include "api/bench.h"
#include "client/burst.h"
#include "gateway/routes_operator.h"

// The burst of `flotilla bench`, run by the server on its own endpoint: a browser opens only six
// connections to a host, and what it measured would be the browser.
namespace flotilla::gateway {
namespace {

api::BenchStream stream_of(int number, const client::StreamSeen& seen, Instant begin) {
  api::BenchStream out;
  out.number = number;
  out.node = seen.node;
  out.tokens = seen.completion_tokens;
  out.whole = seen.whole && seen.error.empty();
  out.error = seen.error;
  if (!seen.pieces.empty()) {
    out.first_ms = to_ms(seen.pieces.front() - begin);
    out.last_ms = to_ms(seen.pieces.back() - begin);
  }
  return out;
}

Task<api::BenchReport> measure(Service& service, api::BenchSpec spec) {
  http::Client client(service.executor, service.itself);
  if (spec.model.empty()) {
    auto only = co_await client::find_only_model(client, service.own_secret);
    if (!only) co_return fail(only.error());
    spec.model = std::move(*only);
  }
  client::BurstOptions options;
  options.requests = spec.requests;
  options.max_tokens = spec.max_tokens;
  options.model = spec.model;
  options.key = service.own_secret;
  auto seen = co_await client::run_burst(service.executor, client, options, service.clock);
  if (!seen) co_return fail(seen.error());
  api::BenchReport report;
  report.spec = std::move(spec);
  report.took_ms = to_ms(seen->end - seen->begin);
  int number = 0;
  for (const client::StreamSeen& stream : seen->streams) {
    report.streams.push_back(stream_of(++number, stream, seen->begin));
  }
  co_return report;
}

Task<http::Response> bench(Service& service, http::Request request, http::PathParams) {
  auto spec = api::parse_bench(request.body);
  if (!spec) co_return fail(spec.error());
  if (!spec->model.empty() && !service.control.find_pool_for(spec->model)) {
    co_return fail(Error{.code = Code::NotFound,
                         .message = fmt::format("no model \"{}\" is loaded", spec->model),
                         .param = "model"});
  }
  // Two at once would measure each other.
  if (service.bench_runs) co_return fail(Code::Conflict, "a measurement is under way already");
  service.bench_runs = true;
  auto report = co_await measure(service, std::move(*spec));
  service.bench_runs = false;
  if (!report) co_return fail(report.error());
  co_return http::json_response(200, api::to_json(*report));
}

}  // namespace

void add_bench_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "POST", "/admin/bench", bench);
}

}  // namespace flotilla::gateway
