#include "agent/gpu_watch.h"

#include <array>
#include <csignal>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "platform/gpu_info.h"

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;
using boost::asio::posix::stream_descriptor;

constexpr std::chrono::seconds kEvery{10};
constexpr std::chrono::seconds kLimit{8};
constexpr std::size_t kTextMax = std::size_t{64} << 10;

Awaitable<void> read_to_end(stream_descriptor& from, std::string& into) {
  std::array<char, 4096> chunk{};
  while (into.size() < kTextMax) {
    const auto [error, count] = co_await from.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return;
    into.append(chunk.data(), count);
  }
}

}  // namespace

// False: there is no such tool.
Awaitable<bool> GpuWatch::look() {
  auto process = platform::Process::spawn(platform::gpu_command());
  if (!process) co_return process.error().code != Code::NotFound;
  std::string text;
  stream_descriptor out(executor_, process->out.release());
  steady_timer limit(executor_, kLimit);
  const auto first = co_await (read_to_end(out, text) || limit.async_wait(kAwait));
  stream_descriptor exit(executor_, process->exit_fd());
  if (first.index() == 0)
    co_await (exit.async_wait(stream_descriptor::wait_read, kAwait) || limit.async_wait(kAwait));
  exit.release();
  if (!process->poll()) {
    // It hangs in its driver, where no signal may reach it: it is not asked again.
    process->signal(SIGKILL);
    process->release();
    known_.clear();
    co_return false;
  }
  std::vector<api::GpuTelemetry> now;
  for (platform::Gpu& gpu : platform::parse_gpus(text)) {
    api::GpuTelemetry& one = now.emplace_back();
    one.index = gpu.index;
    one.name = std::move(gpu.name);
    one.memory_total = gpu.memory_total;
    one.memory_used = gpu.memory_used;
    one.memory_free = gpu.memory_free;
    one.busy_percent = gpu.busy_percent;
    one.temperature_c = gpu.temperature_c;
    one.power_w = gpu.power_w;
  }
  known_ = std::move(now);
  co_return true;
}

Awaitable<void> GpuWatch::run() {
  steady_timer timer(executor_);
  for (;;) {
    const bool there = co_await look();
    if (there)
      timer.expires_after(kEvery);
    else
      timer.expires_at(steady_timer::time_point::max());
    co_await timer.async_wait(kAwait);
  }
}

}  // namespace flotilla::agent
