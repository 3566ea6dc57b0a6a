#include "runner/service.h"

#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "api/admin.h"
#include "api/error_body.h"
#include "api/trace_context.h"
#include "base/log_line.h"
#include "base/random.h"
#include "forms/form_routes.h"
#include "http/header_values.h"
#include "http/sse.h"
#include "platform/memory_info.h"
#include "platform/process.h"
#include "runner/canned_answer.h"
#include "runner/embedding_call.h"
#include "runner/visitor.h"

namespace flotilla::runner {
namespace {

// The client's body, which the parser bounds, and the tokens of a resumption before it.
constexpr std::int64_t kBodyMaxBytes = 64LL << 20;
constexpr Duration kEventsTick = std::chrono::milliseconds(100);
constexpr Duration kEventsEvery = std::chrono::seconds(1);

// In the log, so that a trace leads here.
void note_trace(const http::Request& request, const std::string& id) {
  const auto context = api::read_trace_context(http::values_of(request.headers, "traceparent"), {});
  if (context.empty()) return;
  log::Fields fields = log::of_request(id);
  log::info(fields.add("traceparent", context.traceparent), "request of a trace");
}

http::Response error_response(const Error& error) {
  http::Response response =
      http::json_response(api::http_status(error.code), api::openai_error_body(error));
  if (error.retry_after_s > 0) {
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  }
  return response;
}

// What the client's going away has to reach, whatever the request's phase.
struct ClientLink {
  bool gone = false;
  std::function<void()> abandon;
};

// Ties a call to its link while it is there.
class Linked {
 public:
  Linked(ClientLink& link, auto& call) : link_(link) {
    link_.abandon = [&call] { call.abandon(); };
  }
  ~Linked() { link_.abandon = nullptr; }
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;

 private:
  ClientLink& link_;
};

std::shared_ptr<ClientLink> link_client(http::Exchange& exchange) {
  auto link = std::make_shared<ClientLink>();
  exchange.on_client_gone([link] {
    link->gone = true;
    if (link->abandon) link->abandon();
  });
  return link;
}

class Counted {
 public:
  explicit Counted(std::shared_ptr<int> count) : count_(std::move(count)) { ++*count_; }
  ~Counted() { --*count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  const std::shared_ptr<int> count_;
};

// What requests that compute do before the engine does: work for the text pool.
struct PrepareChat {
  using Prepared = Result<PreparedChat>;
  using Call = ChatCall;
  static constexpr bool kCanned = true;

  std::string body;
  CallHeaders headers;
  std::shared_ptr<const TextTools> tools;
  std::shared_ptr<const platform::Breadcrumb> breadcrumb;

  Prepared operator()(const Compiles& compiles) {
    const platform::Breadcrumb::Preparing mark(*breadcrumb, headers.request_id);
    return prepare_chat(body, headers, *tools, random_seed(), compiles);
  }
};

struct PrepareEmbeddings {
  using Prepared = Result<PreparedEmbeddings>;
  using Call = EmbeddingCall;
  static constexpr bool kCanned = false;

  std::string body;
  CallHeaders headers;
  std::shared_ptr<const TextTools> tools;
  std::shared_ptr<const platform::Breadcrumb> breadcrumb;

  Prepared operator()(const Compiles&) {
    const platform::Breadcrumb::Preparing mark(*breadcrumb, headers.request_id);
    return prepare_embeddings(body, headers, *tools);
  }
};

struct AnswerText {
  TextAnswer answer;
  std::string body;
  CallHeaders headers;
  std::shared_ptr<const TextTools> tools;

  Result<std::string> operator()(const Compiles& compiles) {
    return answer(body, headers, *tools, compiles);
  }
};

Error too_slow(const TextPool::Limits& limits) {
  return Error{.code = Code::InvalidArgument,
               .message = fmt::format("the request took longer than {} s to prepare, or its tools, "
                                      "response_format or grammar longer than {} s to compile; "
                                      "make it simpler",
                                      to_s(limits.all), to_s(limits.slow)),
               .reason = "grammar_too_complex"};
}

}  // namespace

Service::Service(Executor executor, engine::LoadedModel model, const ServiceOptions& options,
                 const Clock& clock)
    : executor_(std::move(executor)),
      options_(options),
      clock_(clock),
      tools_(std::make_shared<const TextTools>(make_text_tools(model, options.alias))),
      started_unix_s_(clock.unix_ms() / 1000),
      sequences_(std::make_shared<Sequences>(clock)),
      breadcrumb_(options.scheduler.breadcrumb ? options.scheduler.breadcrumb
                                               : std::make_shared<platform::Breadcrumb>()),
      text_(options.text_threads) {
  const auto deliver = [to = executor_, sequences = std::weak_ptr(sequences_)](StepReport report) {
    boost::asio::post(to, [sequences, report = std::move(report)]() mutable {
      if (const auto held = sequences.lock()) held->deliver(std::move(report));
    });
  };
  scheduler_ =
      std::make_unique<SchedulerThread>(std::move(model), options_.scheduler, clock_, deliver);
  sequences_->attach(scheduler_.get());
  add_routes();
  http::ServerOptions server;
  server.body_max_bytes = kBodyMaxBytes;
  server.connections_max = options_.connections_max;
  server.error_response = [](int status, std::string_view message, std::string_view path) {
    const Error error{.code = api::code_of_status(status), .message = std::string(message)};
    return http::json_response(status, forms::error_body_for(path, error));
  };
  server_ = std::make_unique<http::Server>(
      executor_, [this](http::Exchange& exchange) { return handle(exchange); }, server);
}

Service::~Service() {
  server_.reset();
  sequences_->attach(nullptr);
}

Result<std::uint16_t> Service::listen_tcp(const std::string& host, std::uint16_t port) {
  return server_->listen_tcp(host, port);
}

Result<void> Service::listen_unix(const std::string& path) { return server_->listen_unix(path); }

Awaitable<void> Service::shutdown(Duration limit) {
  draining_ = true;
  closing_ = true;
  co_await server_->shutdown(limit);
}

void Service::add_routes() {
  using http::Exchange;
  using http::PathParams;
  router_.add("POST", "/v1/chat/completions",
              [this](Exchange& exchange, PathParams) { return chat(exchange); });
  forms::add_form_routes(
      router_,
      {.may_use = [](const http::Request& request) -> Result<std::string> { return request.peer; },
       .parse = [this](forms::ParseWork work) { return text_.run(std::move(work)); },
       .chat = [this](Exchange& exchange) { return chat(exchange); },
       .count = [this](Exchange& exchange) { return text_answer(exchange, count_answer); },
       .card =
           [this] {
             api::ServerCard card;
             card.version = options_.version;
             card.body_max_bytes = kBodyMaxBytes / 2;  // the parser's
             card.queue_max = options_.requests_max;
             return card;
           }});
  for (const auto& [path, answer] :
       std::initializer_list<std::pair<const char*, TextAnswer>>{{"/tokenize", tokenize_answer},
                                                                 {"/detokenize", detokenize_answer},
                                                                 {"/runner/count", count_answer}}) {
    router_.add("POST", path, [this, answer](Exchange& exchange, PathParams) {
      return text_answer(exchange, answer);
    });
  }
  router_.add("POST", "/v1/embeddings",
              [this](Exchange& exchange, PathParams) { return embeddings(exchange); });
  router_.add("GET", "/v1/models",
              [this](Exchange& exchange, PathParams) { return models(exchange); });
  router_.add("GET", "/v1/models/{id}", [this](Exchange& exchange, PathParams params) {
    return model(exchange, std::move(params["id"]));
  });
  router_.add("GET", "/health",
              [this](Exchange& exchange, PathParams) { return health(exchange); });
  router_.add("GET", "/runner/events",
              [this](Exchange& exchange, PathParams) { return events(exchange); });
  router_.add("POST", "/runner/drain",
              [this](Exchange& exchange, PathParams) { return start_drain(exchange); });
  router_.on_not_found([](Exchange& exchange) -> Awaitable<void> {
    const std::string_view path = exchange.request().path();
    const Error error{
        .code = Code::NotFound,
        .message = fmt::format("there is nothing at {}; a runner serves /v1/chat/completions, "
                               "/v1/messages, /v1/responses, /v1/completions, /v1/embeddings, "
                               "/v1/models, /tokenize, /detokenize and /health",
                               path.substr(0, 200))};
    http::Response response = http::json_response(404, forms::error_body_for(path, error));
    co_await exchange.respond(std::move(response));
  });
  router_.on_method_not_allowed([](Exchange& exchange, std::string allow) -> Awaitable<void> {
    const Error error{.code = Code::MethodNotAllowed,
                      .message = fmt::format("{} is not for {}; use {}", exchange.request().method,
                                             exchange.request().path().substr(0, 200), allow)};
    http::Response response =
        http::json_response(405, forms::error_body_for(exchange.request().path(), error));
    response.headers.set("Allow", allow);
    co_await exchange.respond(std::move(response));
  });
}

Awaitable<void> Service::handle(http::Exchange& exchange) {
  const auto may = check_visitor(exchange.request());
  if (may) {
    co_await router_.handle(exchange);
    co_return;
  }
  http::Response response =
      http::json_response(api::http_status(may.error().code),
                          forms::error_body_for(exchange.request().path(), may.error()));
  co_await exchange.respond(std::move(response));
}

// What the gateway says of a request that computes, unless there is no room for it.
Result<CallHeaders> Service::admit(const http::Exchange& exchange) const {
  if (draining_ || *calls_ >= options_.requests_max) {
    return fail({.code = draining_ ? Code::Unavailable : Code::ResourceExhausted,
                 .message = draining_
                                ? "this runner is draining; send the request elsewhere"
                                : "this runner holds as many requests as it can; try again later",
                 .retry_after_s = 1});
  }
  auto headers = read_call_headers(exchange.request().headers, exchange.request().peer == "unix");
  if (headers && headers->node.empty()) headers->node = options_.node;
  return headers;
}

ChatCall::Context Service::context_of(http::Exchange& exchange, Instant arrived) {
  return {.sequences = sequences_,
          .text = text_,
          .tools = tools_,
          .exchange = exchange,
          .clock = clock_,
          .executor = executor_,
          .options = options_.call,
          .arrived = arrived};
}

// A request that computes, from its body to its answer. `Work` prepares it beside this thread.
template <class Work>
Awaitable<void> Service::compute(http::Exchange& exchange) {
  const Instant arrived = clock_.now();
  auto headers = admit(exchange);
  if (!headers) {
    http::Response response = error_response(headers.error());
    co_await exchange.respond(std::move(response));
    co_return;
  }
  const Counted counted(calls_);
  if (Work::kCanned && options_.canned_chunks > 0) {
    co_await write_canned_answer(exchange, *headers, options_.alias, options_.canned_chunks);
    co_return;
  }
  note_trace(exchange.request(), headers->request_id);
  const auto link = link_client(exchange);
  http::Request request = exchange.take_request();
  Work work{.body = std::move(request.body),
            .headers = *headers,
            .tools = tools_,
            .breadcrumb = breadcrumb_};
  restart_if_stuck();
  auto in_time =
      co_await text_.run_within(std::move(work), options_.text_max, headers->cache_group);
  restart_if_stuck();
  typename Work::Prepared prepared =
      in_time ? std::move(*in_time) : fail(too_slow(options_.text_max));
  if (link->gone || exchange.client_gone()) co_return;
  if (!prepared) {
    http::Response response = error_response(prepared.error());
    response.headers.set("X-Request-Id", headers->request_id);
    co_await exchange.respond(std::move(response));
    co_return;
  }
  typename Work::Call call(context_of(exchange, arrived), std::move(*prepared), *headers);
  const Linked linked(*link, call);
  co_await call.run();
}

Awaitable<void> Service::chat(http::Exchange& exchange) { return compute<PrepareChat>(exchange); }

Awaitable<void> Service::embeddings(http::Exchange& exchange) {
  return compute<PrepareEmbeddings>(exchange);
}

// Where every thread for text has been busy with what nobody waits for, and for long, nothing can
// be prepared any more. The bounds before the libraries are what keeps it from that.
void Service::restart_if_stuck() {
  if (text_.overdue() < options_.text_threads) {
    stuck_since_ = Instant::max();
    return;
  }
  const Instant now = clock_.now();
  if (stuck_since_ == Instant::max()) stuck_since_ = now;
  if (now - stuck_since_ < options_.stuck_max) return;
  log::error("runner: all threads for text have been stuck for {:.0f} s; the runner starts anew",
             to_s(options_.stuck_max));
  std::_Exit(3);
}

// Words and counts: nothing of it waits for the engine.
Awaitable<void> Service::text_answer(http::Exchange& exchange, TextAnswer answer) {
  auto headers = read_call_headers(exchange.request().headers, exchange.request().peer == "unix");
  if (!headers) {
    http::Response response = error_response(headers.error());
    co_await exchange.respond(std::move(response));
    co_return;
  }
  http::Request request = exchange.take_request();
  std::string group = headers->cache_group;
  AnswerText work{.answer = answer,
                  .body = std::move(request.body),
                  .headers = std::move(*headers),
                  .tools = tools_};
  restart_if_stuck();
  auto in_time = co_await text_.run_within(std::move(work), options_.text_max, std::move(group));
  restart_if_stuck();
  const Result<std::string> made =
      in_time ? std::move(*in_time) : fail(too_slow(options_.text_max));
  http::Response response = made ? http::json_response(200, *made) : error_response(made.error());
  co_await exchange.respond(std::move(response));
}

namespace {

api::ModelEntry entry_of(const TextTools& tools, std::int64_t created) {
  api::ModelEntry entry;
  entry.id = tools.alias;
  entry.created = created;
  entry.pool.batch = tools.info.width > 1;
  entry.pool.context_length = tools.info.context;
  entry.pool.quantization = tools.info.quantization;
  entry.pool.size_bytes = tools.info.model_bytes;
  api::ReplicaStatus& replica = entry.pool.replicas.emplace_back();
  replica.live = true;
  return entry;
}

}  // namespace

Awaitable<void> Service::models(http::Exchange& exchange) {
  http::Response response =
      http::json_response(200, api::models_json({entry_of(*tools_, started_unix_s_)}));
  co_await exchange.respond(std::move(response));
}

Awaitable<void> Service::model(http::Exchange& exchange, std::string id) {
  http::Response response;
  if (id == options_.alias) {
    response = http::json_response(200, api::model_json(entry_of(*tools_, started_unix_s_)));
  } else {
    response = error_response(
        {.code = Code::NotFound,
         .message = fmt::format("model \"{}\" is not here; this runner serves \"{}\"",
                                id.substr(0, 200), options_.alias),
         .param = "model",
         .reason = "model_not_found"});
  }
  co_await exchange.respond(std::move(response));
}

Awaitable<void> Service::health(http::Exchange& exchange) {
  const char* status = draining_ ? "draining" : *calls_ > 0 ? "ok" : "idle";
  http::Response response = http::json_response(200, fmt::format(R"({{"status":"{}"}})", status));
  co_await exchange.respond(std::move(response));
}

// On change, at most ten times a second, and every second.
Awaitable<void> Service::events(http::Exchange& exchange) {
  const http::Headers headers{{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  bool open = co_await exchange.start(200, headers);
  boost::asio::steady_timer timer(executor_);
  Instant said{};
  std::uint64_t changes_said = 0;
  while (open && !closing_ && !exchange.client_gone()) {
    const Instant now = clock_.now();
    if (now - said >= kEventsEvery || changes_said != sequences_->changes()) {
      said = now;
      changes_said = sequences_->changes();
      api::RunnerEvent load = sequences_->load();
      load.resident_bytes = platform::resident_bytes(platform::own_pid()).value_or(0);
      load.drafts.mode = options_.drafts.mode;
      load.drafts.reason = options_.drafts.reason;
      const std::string event = http::sse_event(api::to_json(load));
      open = co_await exchange.write(event);
    }
    timer.expires_after(kEventsTick);
    co_await timer.async_wait(kAwait);
  }
  if (open) co_await exchange.finish();
}

Awaitable<void> Service::start_drain(http::Exchange& exchange) {
  drain();
  http::Response response =
      http::json_response(200, fmt::format(R"({{"draining":true,"requests":{}}})", *calls_));
  co_await exchange.respond(std::move(response));
}

}  // namespace flotilla::runner
