#include "agent/model_hashes.h"

#include <fstream>
#include <utility>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/sha256.h"
#include "platform/files.h"

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kCacheLinesMax = 10000;

}  // namespace

struct ModelHashes::Job {
  explicit Job(const Executor& executor) : ended(executor, steady_timer::time_point::max()) {}
  steady_timer ended;  // cancelled when it is over
  std::string hash;
  bool over = false;

  Awaitable<void> wait() {
    while (!over) co_await ended.async_wait(kAwait);
  }
};

ModelHashes::ModelHashes(Executor executor, std::filesystem::path cache_file)
    : executor_(std::move(executor)), cache_file_(std::move(cache_file)) {}

ModelHashes::~ModelHashes() {
  stop_ = true;
  thread_.join();
}

Awaitable<std::string> ModelHashes::find(model::ModelFileSet files,
                                         std::chrono::milliseconds limit) {
  const std::string name = files.first.string();
  std::shared_ptr<Job>& known = jobs_[name];
  if (!known) {
    known = std::make_shared<Job>(executor_);
    boost::asio::post(thread_, [this, name, job = known, files = std::move(files)] {
      std::string hash = work_out(files);
      boost::asio::post(executor_, [this, name, job, hash = std::move(hash)]() mutable {
        job->hash = std::move(hash);
        job->over = true;
        job->ended.cancel();
        jobs_.erase(name);
      });
    });
  }
  const std::shared_ptr<Job> job = known;
  steady_timer deadline(executor_, limit);
  co_await (job->wait() || deadline.async_wait(kAwait));
  co_return job->hash;
}

std::string ModelHashes::work_out(const model::ModelFileSet& files) {
  if (!std::exchange(cache_read_, true)) read_cache();
  Sha256 all;
  std::string one;
  for (const std::filesystem::path& part : files.parts) {
    one = hash_of(part);
    if (one.empty()) return {};
    all.add(one);
  }
  return files.parts.size() == 1 ? one : hex_text(all.finish());
}

std::string ModelHashes::hash_of(const std::filesystem::path& file) {
  const std::string identity = platform::file_identity(file);
  if (identity.empty()) return {};
  if (const auto known = cache_.find(identity); known != cache_.end()) return known->second;
  std::ifstream in(file, std::ios::binary);
  std::vector<char> piece(kPiece);
  Sha256 hash;
  while (in && !stop_) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.add({piece.data(), static_cast<std::size_t>(in.gcount())});
  }
  // Written to meanwhile: it is neither the one nor the other.
  if (stop_ || !in.eof() || platform::file_identity(file) != identity) return {};
  const std::string text = hex_text(hash.finish());
  cache_[identity] = text;
  std::ofstream out(cache_file_, std::ios::app);
  out << identity << ' ' << text << '\n';
  return text;
}

void ModelHashes::read_cache() {
  std::ifstream in(cache_file_);
  std::string identity;
  std::string hash;
  while (cache_.size() < kCacheLinesMax && in >> identity >> hash)
    if (hash.size() == 64) cache_[identity] = hash;
}

}  // namespace flotilla::agent
