#include "gateway/engine_probe.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/engine_template.h"
#include "gateway/gather.h"
#include "gateway/relay.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kHealthLimit{10};
constexpr std::chrono::seconds kAnswerLimit{120};  // an engine may compile at its first request
constexpr std::int64_t kBytesMax = 4 << 20;
constexpr const char* kUsualHealth = "/health";
constexpr int kTogetherTokens = 8;

http::Endpoint root_of(http::Endpoint endpoint) {
  endpoint.base_path.clear();
  return endpoint;
}

// Of one that runs elsewhere we know what it is, and what no option of it brings back.
void be_known(api::ForeignEngine& engine, std::string_view name) {
  const api::EngineTemplate* shipped = api::find_engine(api::shipped_engines(), name);
  if (shipped == nullptr) return;
  engine.name = name;
  engine.salts_cache = shipped->salts_cache;
  engine.lacks = shipped->lacks;
  std::erase(engine.lacks, "tools");
}

// Which of the things that an operator has said of it may be wrong.
const char* doubtful(int status, const char* if_missing) {
  if (status == 401 || status == 403) return "key";
  return status == 404 ? if_missing : "";
}

}  // namespace

EngineProbe::EngineProbe(Executor executor, http::Client& client, api::ForeignEngine& engine)
    : executor_(executor),
      client_(client),
      root_(executor, root_of(client.endpoint())),
      engine_(engine) {}

http::Request EngineProbe::request(std::string method, std::string target) const {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!engine_.api_key.empty()) request.headers.add("Authorization", "Bearer " + engine_.api_key);
  return request;
}

Task<void> EngineProbe::health() {
  if (engine_.health.empty()) {
    auto listed = co_await list_models();
    // Some cannot list what they serve, or not always.
    const bool may_ask = !listed && listed.error().reason != "connect" && !engine_.model.empty();
    if (!may_ask) co_return listed;
  }
  http::Request asked = request("GET", engine_.health.empty() ? kUsualHealth : engine_.health);
  const auto answer = co_await root_.fetch(std::move(asked), kHealthLimit, kBytesMax);
  if (!answer) co_return fail(answer.error());
  if (answer->status == 200) co_return Result<void>{};
  co_return fail(Code::Unavailable,
                 fmt::format("its health check answered {} ({})", answer->status, engine_.where));
}

Task<void> EngineProbe::list_models() {
  http::Request asked = request("GET", "/models");
  const auto answer = co_await client_.fetch(std::move(asked), kHealthLimit, kBytesMax);
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) {
    co_return fail(
        Error{.code = Code::Unavailable,
              .message = fmt::format("GET {}/models answered {}", engine_.where, answer->status),
              .reason = doubtful(answer->status, "path")});
  }
  const api::ListedModel model = api::first_model(answer->body);
  if (engine_.model.empty()) engine_.model = model.id;
  if (engine_.model.empty()) {
    co_return fail(
        Error{.code = Code::Unavailable,
              .message = fmt::format("{}/models lists no model; set upstream_model", engine_.where),
              .reason = "model"});
  }
  if (engine_.name.empty()) be_known(engine_, api::engine_of_owner(model.owned_by));
  co_return Result<void>{};
}

// A whole answer, streamed as all of ours are.
Task<void> EngineProbe::answers(std::string text, int tokens) {
  http::Request asked = request("POST", "/chat/completions");
  asked.headers.add("Content-Type", "application/json");
  asked.headers.add("Connection", "close");
  asked.body = api::probe_chat_body(engine_, text, tokens);
  const auto answer = co_await client_.fetch(std::move(asked), kAnswerLimit, kBytesMax);
  if (!answer) co_return fail(answer.error());
  auto whole = api::check_probe_answer(answer->status, answer->body);
  if (!whole && answer->status != 200) whole.error().reason = doubtful(answer->status, "model");
  if (!whole) hide(whole.error().message, engine_.api_key);
  co_return whole;
}

// Prompts of different lengths: at one position each even an engine that knows only one position
// for all of them answers.
Awaitable<Result<void>> EngineProbe::answers_two() {
  std::vector<Awaitable<Result<void>>> works;
  works.push_back(answers("Hello", kTogetherTokens));
  works.push_back(answers("Tell me in a few words what the sea looks like", kTogetherTokens));
  const auto both = co_await gather(executor_, std::move(works));
  for (const auto& one : both)
    if (!one) co_return fail(one.error());
  co_return Result<void>{};
}

Task<cluster::ReplicaInfo> EngineProbe::meet(int width) {
  if (engine_.model.empty()) {
    const auto listed = co_await list_models();
    if (!listed) co_return fail(listed.error());
  }
  const auto one = co_await answers("hi", 1);
  if (!one) {
    co_return fail(Error{.code = Code::Unavailable,
                         .message = fmt::format("{} does not answer a one-token request: {}",
                                                engine_.where, one.error().message),
                         .reason = one.error().reason});
  }
  cluster::ReplicaInfo info;
  info.external = true;
  if (width <= 1) co_return info;
  const auto two = co_await answers_two();
  if (two) {
    info.width = width;
    co_return info;
  }
  info.batch_reason =
      fmt::format("{} did not answer two requests at the same time whole: {}",
                  engine_.name.empty() ? "the engine" : engine_.name, two.error().message);
  // What two at once have broken serves nobody.
  const auto again = co_await answers("hi", 1);
  if (!again) co_return fail(Code::Unavailable, info.batch_reason);
  co_return info;
}

}  // namespace flotilla::gateway
