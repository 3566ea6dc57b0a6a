#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/task.h"
#include "engine/engine.h"
#include "http/router.h"
#include "http/server.h"
#include "runner/chat_call.h"
#include "runner/prepare.h"
#include "runner/sequences.h"
#include "runner/text_answers.h"
#include "runner/text_pool.h"

namespace flotilla::runner {

struct ServiceOptions {
  std::string alias;
  std::string version;      // of the program
  std::string node;         // in x_flotilla where the gateway names none
  int requests_max = 2048;  // at once; more are answered 429
  int connections_max = 20000;
  int text_threads = 3;  // of which one cache group's requests never have all
  // What a request's text may take: all of it, and its own rules. Longer is its fault.
  TextPool::Limits text_max = {.all = std::chrono::seconds(10), .slow = std::chrono::seconds(2)};
  Duration stuck_max = std::chrono::seconds(60);  // all threads for text with what nobody awaits
  api::RunnerDrafts drafts = {};                  // mode and reason, as events tell them
  int canned_chunks = 0;  // > 0: every answer is so many words at once (measurements)
  CallOptions call;
  SchedulerOptions scheduler;
};

// A loaded model behind HTTP: the routes of a runner. Lives on one I/O thread, beside which it has
// the scheduler's thread and the text pool.
class Service {
 public:
  Service(Executor executor, engine::LoadedModel model, const ServiceOptions& options,
          const Clock& clock);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Result<std::uint16_t> listen_tcp(const std::string& host, std::uint16_t port);
  Result<void> listen_unix(const std::string& path);

  // No new requests (503); those that run end by themselves.
  void drain() { draining_ = true; }
  // Drains for at most `limit`, then cuts.
  Awaitable<void> shutdown(Duration limit);

  const engine::EngineInfo& info() const { return tools_->info; }
  api::RunnerEvent load() { return sequences_->load(); }
  int calls() const { return *calls_; }

 private:
  Result<CallHeaders> admit(const http::Exchange& exchange) const;
  Awaitable<void> handle(http::Exchange& exchange);
  Awaitable<void> chat(http::Exchange& exchange);
  Awaitable<void> embeddings(http::Exchange& exchange);
  ChatCall::Context context_of(http::Exchange& exchange, Instant arrived);
  template <class Work>
  Awaitable<void> compute(http::Exchange& exchange);
  Awaitable<void> text_answer(http::Exchange& exchange, TextAnswer answer);
  Awaitable<void> models(http::Exchange& exchange);
  Awaitable<void> model(http::Exchange& exchange, std::string id);
  Awaitable<void> health(http::Exchange& exchange);
  Awaitable<void> events(http::Exchange& exchange);
  Awaitable<void> start_drain(http::Exchange& exchange);
  void add_routes();
  void restart_if_stuck();

  const Executor executor_;
  const ServiceOptions options_;
  const Clock& clock_;
  const std::shared_ptr<const TextTools> tools_;
  const std::int64_t started_unix_s_;
  const std::shared_ptr<Sequences> sequences_;
  std::unique_ptr<SchedulerThread> scheduler_;
  const std::shared_ptr<const platform::Breadcrumb> breadcrumb_;
  TextPool text_;
  http::Router router_;
  std::unique_ptr<http::Server> server_;
  // Chat requests that are being answered. Shared: a request that is cut may outlive this object.
  const std::shared_ptr<int> calls_ = std::make_shared<int>(0);
  Instant stuck_since_ = Instant::max();  // no thread was left for text
  bool draining_ = false;
  bool closing_ = false;
};

}  // namespace flotilla::runner
