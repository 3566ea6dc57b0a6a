#include "agent/runner_process.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "agent/exit_reason.h"
#include "agent/runner_command.h"
#include "base/log.h"
#include "platform/breadcrumb.h"
#include "platform/memory_info.h"

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::posix::stream_descriptor;

constexpr std::size_t kLineMax = std::size_t{64} << 10;
constexpr std::chrono::milliseconds kDrain{300};
constexpr std::chrono::milliseconds kGrowthEvery{1000};

}  // namespace

RunnerProcess::RunnerProcess(Options options, platform::Process process)
    : options_(std::move(options)),
      process_(std::move(process)),
      life_line_(options_.executor, process_.in.release()),
      out_(options_.executor, process_.out.release()),
      err_(options_.executor, process_.err.release()),
      exit_(options_.executor, process_.exit_fd()),
      kill_(options_.executor),
      growth_(options_.executor),
      drain_(options_.executor, boost::asio::steady_timer::time_point::max()),
      log_(options_.log_file) {}

Awaitable<api::ReplicaExited> RunnerProcess::run() {
  options_.on_event(spawned());
  if (is_engine())
    co_await (read_lines() && read_log() && watch_growth() && wait_for_exit());
  else
    co_await (read_lines() && read_log() && wait_for_exit());
  exit_.release();  // the process owns it
  kill_.cancel();
  co_return end_report();
}

Awaitable<void> RunnerProcess::read_lines() {
  std::array<char, 4096> chunk{};
  std::string line;
  for (;;) {
    const auto [error, count] = co_await out_.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) break;
    for (const char c : std::string_view(chunk.data(), count)) {
      if (c == '\n')
        take_line(std::exchange(line, {}));
      else if (line.size() < kLineMax)
        line += c;
    }
  }
  one_pipe_ended();
}

Awaitable<void> RunnerProcess::read_log() {
  std::array<char, 16384> chunk{};
  for (;;) {
    const auto [error, count] = co_await err_.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) break;
    log_.append(std::string_view(chunk.data(), count));
  }
  one_pipe_ended();
}

void RunnerProcess::one_pipe_ended() {
  if (--open_pipes_ == 0) drain_.cancel();
}

// A child of the runner may still hold the pipes: they are not waited for longer than kDrain.
Awaitable<void> RunnerProcess::wait_for_exit() {
  if (is_engine()) {
    co_await exit_.async_wait(stream_descriptor::wait_read, kAwait);
    process_.signal(SIGKILL);  // what it started and left behind; its group is ours until we reap
  }
  while (!process_.poll()) co_await exit_.async_wait(stream_descriptor::wait_read, kAwait);
  growth_.cancel();
  if (open_pipes_ > 0) {
    drain_.expires_after(kDrain);
    co_await drain_.async_wait(kAwait);
  }
  out_.cancel();
  err_.cancel();
}

// An engine tells nothing of its load: what its memory grows by is an estimate.
Awaitable<void> RunnerProcess::watch_growth() {
  std::int64_t told = -1;
  while (process_.running() && told < options_.model_bytes) {
    const std::int64_t now = std::min(resident_bytes(), options_.model_bytes);
    if (now > told) {
      told = now;
      options_.on_event(api::ReplicaLoading{options_.replica, told, options_.model_bytes});
    }
    growth_.expires_after(kGrowthEvery);
    const auto [stopped] = co_await growth_.async_wait(kAwait);
    if (stopped) break;
  }
}

std::int64_t RunnerProcess::resident_bytes() const {
  return is_engine() ? platform::group_resident_bytes(process_.pid())
                     : platform::resident_bytes(process_.pid()).value_or(0);
}

void RunnerProcess::take_line(const std::string& line) {
  if (line.empty()) return;
  if (is_engine()) return log_.append(line + "\n");
  auto said = api::parse_runner_line(line);
  if (!said) {
    log_.append(line + "\n");
    return;
  }
  if (const auto* loading = std::get_if<api::RunnerLoading>(&*said)) {
    options_.on_event(
        api::ReplicaLoading{options_.replica, loading->loaded_bytes, loading->total_bytes});
  } else if (auto* info = std::get_if<api::RunnerInfo>(&*said)) {
    info_ = std::move(*info);
    options_.on_event(api::ReplicaReady{options_.replica, *info_});
  } else {
    failure_ = std::get<api::RunnerFailed>(*said).error;
  }
}

void RunnerProcess::stop(std::chrono::milliseconds grace) {
  if (!process_.running() || killed_) return;
  const auto before = kill_.expiry();
  const bool again = std::exchange(stop_asked_, true);
  kill_.expires_after(grace);
  if (again && before < kill_.expiry()) kill_.expires_at(before);
  if (!again) process_.signal(SIGTERM);
  kill_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->killed_ = true;
    self->process_.signal(SIGKILL);
  });
}

api::HeldReplica RunnerProcess::held() const {
  return {.replica = options_.replica,
          .generation = options_.generation,
          .socket = options_.socket,
          .pid = process_.pid(),
          .info = info_,
          .engine = options_.engine};
}

api::ReplicaSpawned RunnerProcess::spawned() const {
  return {.replica = options_.replica,
          .pid = process_.pid(),
          .socket = options_.socket,
          .engine = options_.engine,
          .model_bytes = options_.model_bytes};
}

void RunnerProcess::repeat_events() const {
  options_.on_event(spawned());
  if (info_) options_.on_event(api::ReplicaReady{options_.replica, *info_});
}

api::ReplicaExited RunnerProcess::end_report() {
  const auto status = process_.poll().value_or(platform::ExitStatus{});
  // Of an engine all that is known is what it wrote last.
  if (is_engine() && failure_.empty() && status.exit_code.value_or(0) != 0)
    failure_ = fmt::format("{}: {}", platform::describe(status), log_.last_line());
  const bool killed_by_other = status.signal == SIGKILL && !stop_asked_;
  api::ReplicaExited exited =
      judge_exit({.status = status,
                  .stop_asked = stop_asked_,
                  .killed_by_us = killed_,
                  .memory_kill = killed_by_other && options_.take_memory_kill(),
                  .was_ready = info_.has_value(),
                  .failure = failure_});
  exited.replica = options_.replica;
  if (!is_engine()) {
    const std::string breadcrumb = breadcrumb_of(options_.socket);
    if (exited.own_fault) exited.named = platform::read_breadcrumb(breadcrumb).named();
    std::error_code ignored;
    std::filesystem::remove(breadcrumb, ignored);
  }
  exited.log_tail = log_.tail();
  log::info("replica {}: {}", options_.replica, exited.reason);
  return exited;
}

}  // namespace flotilla::agent
