#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "api/inventory.h"
#include "gateway/gather.h"
#include "gateway/model_inventory.h"
#include "gateway/routes_operator.h"
#include "model/alias.h"

// What the nodes have and what would fit on them: asked before a load.
namespace flotilla::gateway {
namespace {

using http::PathParams;

constexpr int kContextMax = 1 << 30;
constexpr std::chrono::seconds kModelsHold{10};

Result<const api::ClusterSpec*> find_cluster(const Service& service, const std::string& id) {
  const api::ClusterSpec* cluster = service.control.find_cluster(id);
  if (cluster == nullptr) {
    return fail(Code::NotFound, fmt::format("there is no cluster \"{}\"", id));
  }
  return cluster;
}

Task<http::Response> list_models(Service& service, http::Request, PathParams params) {
  const auto found = find_cluster(service, params["c"]);
  if (!found) co_return fail(found.error());
  const auto models = co_await models_in(service.control, service.executor, **found);
  co_return http::json_response(200, api::to_json(models));
}

Task<http::Response> list_all_models(Service& service, http::Request, PathParams) {
  std::vector<Awaitable<api::ClusterModels>> works;
  for (const api::ClusterSpec& cluster : service.control.clusters())
    works.push_back(models_in(service.control, service.executor, cluster));
  const auto clusters = co_await gather(service.executor, std::move(works));
  co_return http::json_response(200, api::to_json(clusters));
}

struct Question {
  std::string model;
  bool batch = false;
  int context = 0;
  std::string engine;
};

Result<Question> read_question(const http::Request& request) {
  Question question;
  question.model = request.query("model").value_or("");
  if (question.model.empty()) {
    return fail(Error{.code = Code::InvalidArgument,
                      .message = "preflight wants ?model=, a path",
                      .param = "model"});
  }
  question.engine = request.query("engine").value_or("");
  const std::string batch = request.query("batch").value_or("false");
  if (batch != "true" && batch != "false") {
    return fail(Error{.code = Code::InvalidArgument,
                      .message = fmt::format("batch is true or false, not \"{}\"", batch),
                      .param = "batch"});
  }
  question.batch = batch == "true";
  const std::string context = request.query("context").value_or("");
  if (context.empty()) return question;
  const char* end = context.data() + context.size();
  const auto [at, wrong] = std::from_chars(context.data(), end, question.context);
  if (wrong != std::errc() || at != end || question.context < 0 || question.context > kContextMax) {
    return fail(Error{.code = Code::InvalidArgument,
                      .message = fmt::format("context is a number of tokens, not \"{}\"", context),
                      .param = "context"});
  }
  return question;
}

Task<http::Response> preflight(Service& service, http::Request request, PathParams params) {
  const auto found = find_cluster(service, params["c"]);
  if (!found) co_return fail(found.error());
  const auto question = read_question(request);
  if (!question) co_return fail(question.error());
  GenerationSpec generation;
  generation.load.model = question->model;
  generation.load.batch = question->batch;
  generation.load.context = question->context;
  generation.load.engine = question->engine;
  if (auto known = service.control.check_engine(generation.load); !known)
    co_return fail(known.error());
  generation.width = service.control.pool_width(generation.load);
  api::PreflightReport report;
  report.cluster = (*found)->id;
  report.model = question->model;
  report.batch = question->batch;
  report.width = generation.width;
  report.nodes = co_await service.control.ask_nodes(**found, std::move(generation));
  co_return http::json_response(200, api::to_json(report));
}

Awaitable<std::vector<api::ModelEntry>> look_for_models(Service& service) {
  std::map<std::string, api::ModelEntry> found;
  const std::vector<api::ClusterSpec> clusters = service.control.clusters();
  for (const api::ClusterSpec& cluster : clusters) {
    const api::ClusterModels files = co_await models_in(service.control, service.executor, cluster);
    for (const api::NodeModels& node : files.nodes) {
      for (const api::ModelFile& file : node.models) {
        if (!file.error.empty()) continue;
        std::string alias = model::default_alias(file.path);
        api::ModelEntry& entry = found[alias];
        entry.id = std::move(alias);
        entry.ready = false;
        entry.pool.context_length = file.context_trained;
        entry.pool.quantization = file.quantization;
        entry.pool.size_bytes = file.bytes;
      }
    }
  }
  std::vector<api::ModelEntry> out;
  for (auto& [alias, entry] : found) out.push_back(std::move(entry));
  co_return out;
}

}  // namespace

Awaitable<std::vector<api::ModelEntry>> unloaded_models(Service& service) {
  UnloadedModels& kept = service.unloaded;
  if (kept.looking) {
    const auto over = std::make_shared<boost::asio::steady_timer>(service.executor, Instant::max());
    kept.waiting.push_back(over);
    co_await over->async_wait(kAwait);
  } else if (!kept.at || service.clock.now() - *kept.at >= kModelsHold) {
    kept.looking = true;
    kept.found = co_await look_for_models(service);
    kept.at = service.clock.now();
    kept.looking = false;
    for (const auto& waiting : std::exchange(kept.waiting, {})) waiting->cancel();
  }
  std::vector<api::ModelEntry> out;
  for (const api::ModelEntry& entry : kept.found) {
    if (!service.control.find_pool(entry.id)) out.push_back(entry);
  }
  co_return out;
}

void add_model_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/models", list_all_models);
  add_admin_route(router, service, "GET", "/admin/clusters/{c}/models", list_models);
  add_admin_route(router, service, "GET", "/admin/clusters/{c}/preflight", preflight);
}

}  // namespace flotilla::gateway
