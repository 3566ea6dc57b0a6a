#include "gateway/dashboard_assets.h"
#include "gateway/routes.h"

namespace flotilla::gateway {
namespace {

// Pages without secrets: what they show comes from /admin, which asks who may.
Awaitable<void> serve_asset(http::Exchange& exchange, const Asset& asset) {
  http::Response response;
  auto& headers = response.headers;
  headers.add("ETag", std::string(asset.etag));
  const bool hashed = asset.path.starts_with(kDashboardHashedPrefix);
  headers.add("Cache-Control", std::string(hashed ? kDashboardHashedCache : kDashboardPageCache));
  headers.add("Content-Security-Policy", std::string(kDashboardPolicy));
  headers.add("X-Content-Type-Options", "nosniff");
  headers.add("Referrer-Policy", "no-referrer");
  if (exchange.request().headers.find("If-None-Match") == asset.etag) {
    response.status = 304;
  } else {
    headers.add("Content-Type", std::string(asset.content_type));
    headers.add("Content-Encoding", "gzip");
    response.body = std::string(asset.gzip_bytes);
  }
  co_await exchange.respond(std::move(response));
}

}  // namespace

void add_dashboard_routes(http::Router& router, Service&) {
  for (const Asset& asset : dashboard_assets()) {
    router.add("GET", std::string(asset.path),
               [&asset](http::Exchange& exchange, http::PathParams) {
                 return serve_asset(exchange, asset);
               });
  }
}

}  // namespace flotilla::gateway
