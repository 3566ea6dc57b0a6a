#include "runner/runner.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "api/runner_protocol.h"
#include "base/log.h"
#include "engine/llama_engine.h"
#include "model/footprint.h"
#include "model/gguf_header.h"
#include "model/model_files.h"
#include "platform/breadcrumb.h"
#include "platform/files.h"
#include "platform/limits.h"
#include "platform/memory_info.h"
#include "platform/open_files.h"
#include "platform/process.h"

namespace flotilla::runner {
namespace {

constexpr Duration kProgressEvery = std::chrono::milliseconds(100);
constexpr int kStdin = 0;

api::RunnerInfo describe(const engine::EngineInfo& info, int width_asked) {
  api::RunnerInfo out;
  out.protocol = api::kRunnerProtocol;
  out.description = info.description;
  out.quantization = info.quantization;
  out.context = info.context;
  out.context_trained = info.context_trained;
  out.width = info.width;
  out.width_reason = info.width_reason;
  out.batch = info.width > 1;
  if (!out.batch && width_asked > 1) out.batch_reason = info.width_reason;
  out.model_bytes = info.model_bytes;
  out.kv_bytes = info.kv_bytes;
  out.numerics = info.numerics;
  out.exact_resume = info.exact_resume;
  out.kernels = "stock";
  return out;
}

// What of `limit` bytes the model leaves to conversations; its need is known from its file, before
// the load. A part is for what comes and goes: requests, and conversations between cells and store.
Result<std::int64_t> memory_beside_model(const engine::LoadOptions& load, std::int64_t limit) {
  const auto files = model::find_model(load.model.string(), "");
  if (!files) return flotilla::fail(files.error());
  const auto header = model::read_gguf_header(files->first);
  if (!header) return flotilla::fail(header.error());
  const auto need =
      model::footprint(*header, files->bytes,
                       {.width = load.width,
                        .context = load.context,
                        .window = load.window,
                        .kv_type = load.kv_type == engine::KvType::Q8_0 ? "q8_0" : "f16",
                        .draft_tokens = load.draft_tokens_max});
  if (!need) return flotilla::fail(need.error());
  if (need->total() <= limit) return std::max<std::int64_t>(0, limit - need->total() - limit / 16);
  constexpr double mib = 1 << 20;
  return flotilla::fail(
      Code::ResourceExhausted,
      fmt::format(
          "the model needs {:.0f} MiB (weights {:.0f}, {} x {} cells {:.0f}, buffers {:.0f}), "
          "and the memory limit is {:.0f} MiB; give less context or width, or more memory",
          static_cast<double>(need->total()) / mib, static_cast<double>(need->weights) / mib,
          load.width, need->context, static_cast<double>(need->kv) / mib,
          static_cast<double>(need->buffers) / mib, static_cast<double>(limit) / mib));
}

// The process's life around a Service: the I/O loop runs from the first moment, so that signals and
// the life line are heard while the model loads on a thread of its own.
class Process {
 public:
  explicit Process(const RunnerOptions& options)
      : options_(options), signals_(io_, SIGINT, SIGTERM), loader_(1), stdin_(io_) {}

  int run() {
    platform::ignore_broken_pipes();
    if (!options_.breadcrumb_path.empty()) {
      auto crumb = platform::Breadcrumb::create(options_.breadcrumb_path);
      if (crumb) {
        *breadcrumb_ = std::move(*crumb);
      } else {
        log::warning("{}; who causes a crash will not be known", crumb.error().message);
      }
    }
    boost::asio::co_spawn(io_, watch_signals(), boost::asio::detached);
    if (options_.supervised) boost::asio::co_spawn(io_, watch_stdin(), boost::asio::detached);
    boost::asio::co_spawn(io_, serve(), boost::asio::detached);
    io_.run();
    return exit_code_;
  }

 private:
  Awaitable<void> serve();
  Awaitable<void> watch_signals();
  Awaitable<void> watch_stdin();
  Result<engine::LoadedModel> load();
  Result<std::string> listen();
  ServiceOptions service_options(const engine::EngineInfo& info);
  void say(const api::RunnerLine& line);
  void fail(const Error& error);
  void stop();

  const RunnerOptions& options_;
  SystemClock clock_;
  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_;
  TextPool loader_;
  const std::shared_ptr<platform::Breadcrumb> breadcrumb_ =
      std::make_shared<platform::Breadcrumb>();
  boost::asio::posix::stream_descriptor stdin_;
  std::unique_ptr<Service> service_;
  std::optional<std::int64_t> left_for_store_;  // of the memory limit, once it is loaded
  std::atomic<bool> cancelled_{false};          // the load is to stop
  int exit_code_ = 0;
};

Awaitable<void> Process::serve() {
  const auto load_work = [this] { return load(); };
  Result<engine::LoadedModel> model = co_await loader_.run(load_work);
  if (cancelled_) {
    stop();
    co_return;
  }
  if (!model) {
    fail(model.error());
    co_return;
  }
  const engine::EngineInfo info = model->engine->info();
  service_ = std::make_unique<Service>(io_.get_executor(), std::move(*model), service_options(info),
                                       clock_);
  const auto address = listen();
  if (!address) {
    fail(address.error());
    co_return;
  }
  const int width_asked = options_.synthetic ? options_.fake.width : options_.load.width;
  log::info("{} on {}, context {}, width {}{}", info.description, *address, info.context,
            info.width, info.width_reason.empty() ? "" : " (" + info.width_reason + ")");
  if (options_.supervised) say(describe(info, width_asked));
  if (options_.on_ready) options_.on_ready(*address);
}

Result<engine::LoadedModel> Process::load() {
  const bool drafts = options_.speculate != "off";
  if (options_.synthetic) {
    engine::FakeOptions fake = options_.fake;
    if (drafts) fake.draft_tokens_max = model::kDraftTokensMax;
    return engine::make_fake_model(fake);
  }
  engine::LoadOptions load = options_.load;
  if (drafts) load.draft_tokens_max = model::kDraftTokensMax;
  Instant said{};
  const auto progress = [this, &said](std::int64_t loaded, std::int64_t total) {
    const Instant now = clock_.now();
    if (loaded == total || now - said >= kProgressEvery) {
      said = now;
      if (options_.supervised) {
        say(api::RunnerLoading{.loaded_bytes = loaded, .total_bytes = total});
      } else if (options_.on_loading) {
        options_.on_loading(loaded, total);
      }
    }
    return !cancelled_.load();
  };
  if (options_.memory_limit) {
    const auto left = memory_beside_model(load, *options_.memory_limit);
    if (!left) return flotilla::fail(left.error());
    left_for_store_ = *left;
  }
  return engine::load_llama(load, progress);
}

ServiceOptions Process::service_options(const engine::EngineInfo& info) {
  ServiceOptions out = options_.service;
  constexpr int kFilesBeside = 128;
  const int files = platform::raise_open_files_limit() - kFilesBeside;
  out.connections_max = std::clamp(files, 32, out.connections_max);
  out.scheduler.breadcrumb = breadcrumb_;
  const auto available = [] { return platform::memory_info().available_bytes; };
  out.scheduler.memory_available = available;
  const std::int64_t most = left_for_store_.value_or(std::numeric_limits<std::int64_t>::max());
  // The model's cells are not touched before they are used, and so still count as available.
  const std::int64_t cells = platform::untouched_bytes(platform::own_pid());
  const std::int64_t usual =
      left_for_store_ ? most : std::max<std::int64_t>(0, available() - cells) / 4;
  out.scheduler.store_bytes_max = std::min(most, options_.store_bytes.value_or(usual));
  out.scheduler.disk_folder = options_.cells_dir;
  out.scheduler.disk_bytes_max = options_.disk_bytes;
  batch::Limits& limits = out.scheduler.limits;
  limits.width = info.width;
  limits.context = info.context;
  limits.window = 0;  // each slot of the engine holds a whole context
  limits.step_tokens_max = info.step_tokens_max;
  limits.whole_prompts = info.whole_prompts;
  limits.draft_tokens_max = info.draft_tokens_max;
  if (options_.speculate != "off") {
    out.drafts = {.mode = info.draft_tokens_max > 0 ? "ngram" : "off",
                  .reason = info.draft_tokens_max > 0 ? "" : info.draft_reason};
    if (!out.drafts.reason.empty())
      log::warning("--speculate {} is off: {}", options_.speculate, out.drafts.reason);
  }
  if (info.whole_prompts) limits.prefill_batch = info.width;  // nobody decodes beside them
  return out;
}

Result<std::string> Process::listen() {
  if (!options_.unix_path.empty()) {
    const auto listening = service_->listen_unix(options_.unix_path);
    if (!listening) return flotilla::fail(listening.error());
    return options_.unix_path;
  }
  const auto port = service_->listen_tcp(options_.host, options_.port);
  if (!port) {
    Error error = port.error();
    if (error.code == Code::Conflict)
      error.message += "; choose another --port (0 takes a free one)";
    return flotilla::fail(std::move(error));
  }
  if (options_.host != "127.0.0.1" && options_.host != "::1" && options_.host != "localhost") {
    log::warning(
        "--host {} opens this runner to others: it asks nobody for a key; `flotilla serve` does",
        options_.host);
  }
  return fmt::format("http://{}:{}", options_.host, *port);
}

// The first signal drains, the second ends at once.
Awaitable<void> Process::watch_signals() {
  const auto [error, signal] = co_await signals_.async_wait(kAwait);
  if (error) co_return;
  cancelled_ = true;
  if (service_ == nullptr) co_return;  // serve() sees it when the load has stopped
  log::info("signal {}: draining, at most {:.0f} s", signal, to_s(options_.drain));
  boost::asio::co_spawn(
      io_,
      [](Process& process) -> Awaitable<void> {
        co_await process.service_->shutdown(process.options_.drain);
        process.stop();
      }(*this),
      boost::asio::detached);
  const auto [error_again, again] = co_await signals_.async_wait(kAwait);
  if (!error_again) std::_Exit(128 + again);
}

// Nobody is left who would end us: no draining, no destructors.
Awaitable<void> Process::watch_stdin() {
  boost::system::error_code failed;
  stdin_.assign(kStdin, failed);
  std::array<char, 256> ignored;
  while (!failed) {
    const auto [error, size] =
        co_await stdin_.async_read_some(boost::asio::buffer(ignored), kAwait);
    failed = error;
  }
  if (failed != boost::asio::error::operation_aborted) std::_Exit(0);
}

void Process::say(const api::RunnerLine& line) {
  const std::string text = api::runner_line(line);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Process::fail(const Error& error) {
  log::error("{}", error.message);
  if (options_.supervised) say(api::RunnerFailed{.error = error.message});
  exit_code_ = 1;
  stop();
}

void Process::stop() {
  service_.reset();
  io_.stop();
}

}  // namespace

int run(const RunnerOptions& options) {
  // Cells of conversations that are kept; what a step allocates anew is smaller.
  platform::return_large_blocks(8 << 20);
  Process process(options);
  return process.run();
}

}  // namespace flotilla::runner
