#pragma once

#include "gateway/routes.h"

namespace flotilla::gateway {

// What GET /admin/nodes, /admin/requests and /admin/events answer.
std::string nodes_now(const Service& service);
std::string requests_now(const Service& service, std::size_t most);
Task<std::string> stored_events(Service& service, int most);

// Routes for those who plan and watch; they hold `service` by reference.
void add_transfer_routes(http::Router& router, Service& service);  // /admin/models/sync, transfers
void add_model_routes(http::Router& router, Service& service);     // files, preflight
void add_node_routes(http::Router& router, Service& service);      // /admin/nodes
void add_history_routes(http::Router& router,
                        Service& service);  // /metrics, /admin/history; begins to sample
void add_usage_routes(http::Router& router,
                      Service& service);  // /admin/usage; begins to write it down
void add_stream_routes(http::Router& router,
                       Service& service);  // /admin/stream, a cluster's status/stream
void add_bench_routes(http::Router& router, Service& service);  // /admin/bench

}  // namespace flotilla::gateway
