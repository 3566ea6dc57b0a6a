#include "runner/disk_store.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/random.h"
#include "platform/files.h"
#include "platform/socket_dir.h"

namespace flotilla::runner {
namespace {

constexpr std::string_view kSuffix = ".cells";
constexpr std::size_t kKeyBytes = 64;

Result<std::string> key_of(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "key";
  if (auto key = platform::read_whole(file, kKeyBytes); key && key->size() == kKeyBytes) return key;
  std::string fresh = random_hex(kKeyBytes / 2);
  const std::string_view parts[] = {fresh};
  if (auto written = platform::write_whole(file, parts); !written) return fail(written.error());
  return fresh;
}

// Of "12.cells"; 0: not such a name.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc{} && std::string_view(end) == kSuffix ? number : 0;
}

std::int64_t bytes_of(const batch::Cells& cells) {
  return static_cast<std::int64_t>(cells->size());
}

}  // namespace

Result<std::unique_ptr<DiskStore>> DiskStore::open(Options options, Deliver deliver) {
  if (auto made = platform::make_private_dir(options.folder); !made) return fail(made.error());
  auto key = key_of(options.folder);
  if (!key) return fail(key.error());
  return std::unique_ptr<DiskStore>(
      new DiskStore(std::move(options), std::move(*key), std::move(deliver)));
}

DiskStore::DiskStore(Options options, std::string key, Deliver deliver)
    : options_(std::move(options)),
      key_(std::move(key)),
      deliver_(std::move(deliver)),
      files_({.bytes_max = options_.bytes_max,
              .can_cut = options_.can_cut,
              .on_drop =
                  [this](const Files::Key&, const std::uint64_t& file, Files::Why) {
                    std::error_code ignored;
                    std::filesystem::remove(path_of(file), ignored);
                  }}),
      coming_({.bytes_max = INT64_MAX, .can_cut = options_.can_cut}) {
  take_over();
  thread_ = std::thread([this] { run(); });
}

DiskStore::~DiskStore() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

std::filesystem::path DiskStore::path_of(std::uint64_t file) const {
  return options_.folder / fmt::format("{}{}", file, kSuffix);
}

// The files that are whole, the oldest first; whatever else is there goes, but for the key.
void DiskStore::take_over() {
  std::vector<std::uint64_t> numbers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (const std::uint64_t number = number_of(name); number > 0) {
      numbers.push_back(number);
    } else if (name != "key") {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
  std::ranges::sort(numbers);
  for (const std::uint64_t number : numbers) {
    last_file_ = number;
    auto head = read_cell_file_head(path_of(number), key_);
    bool kept = false;
    if (head) {
      Files::Key key{std::move(head->group), std::move(head->tokens)};
      const auto bytes = std::filesystem::file_size(path_of(number), ignored);
      kept = !files_.covers(key) &&
             files_.put(std::move(key), number, static_cast<std::int64_t>(bytes));
    } else {
      log::warning("runner: {}; it is removed", head.error().message);
    }
    if (!kept) std::filesystem::remove(path_of(number), ignored);
  }
}

std::optional<DiskStore::Match> DiskStore::find(const std::string& group,
                                                std::span<const engine::Token> tokens) {
  const std::lock_guard lock(mutex_);
  const auto file = files_.find(group, tokens);
  const auto coming = coming_.find(group, tokens);
  if (!file && !coming) return std::nullopt;
  const auto& match = !file || (coming && coming->length > file->length) ? coming : file;
  return Match{.file = match->value, .length = match->length};
}

void DiskStore::put(CellFileHead head, batch::Cells cells) {
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t bytes = bytes_of(cells);
    if (!files_.wants(head.tokens.size()) || bytes > options_.bytes_max) return;
    if (pending_bytes_ + bytes > options_.pending_max) return;
    pending_bytes_ += bytes;
    const auto write = std::make_shared<const Write>(
        Write{.file = ++last_file_, .head = std::move(head), .cells = std::move(cells)});
    coming_.put({write->head.group, write->head.tokens}, write->file, bytes);
    pending_.emplace(write->file, write);
    jobs_.emplace_back(write);
  }
  ready_.notify_one();
}

// Somebody waits for it: before what is to be written.
void DiskStore::load(std::uint64_t file, std::uint64_t ticket) {
  {
    const std::lock_guard lock(mutex_);
    const auto first_write = std::ranges::find_if(
        jobs_, [](const auto& job) { return std::holds_alternative<Pending>(job); });
    jobs_.emplace(first_write, Read{.file = file, .ticket = ticket});
  }
  ready_.notify_one();
}

DiskStore::Usage DiskStore::usage() const {
  const std::lock_guard lock(mutex_);
  return {.bytes = files_.bytes(), .count = static_cast<int>(files_.size())};
}

void DiskStore::run() {
  while (true) {
    std::variant<Pending, Read> job;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
      if (closed_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    if (auto* read_job = std::get_if<Read>(&job)) read(*read_job);
    if (auto* write_job = std::get_if<Pending>(&job)) write(**write_job);
  }
}

// From memory to disk at once: it is in one of both at every moment.
void DiskStore::write(const Write& job) {
  const auto bytes = write_if_needed(job);
  bool kept = false;
  {
    const std::lock_guard lock(mutex_);
    if (bytes) {
      kept = files_.put({job.head.group, job.head.tokens}, job.file,
                        static_cast<std::int64_t>(*bytes));
    }
    coming_.forget(job.file);
    pending_.erase(job.file);
    pending_bytes_ -= bytes_of(job.cells);
  }
  std::error_code ignored;
  if (bytes && !kept) std::filesystem::remove(path_of(job.file), ignored);
}

// The file's size; none: there is a file that has all of it, or it could not be written.
std::optional<std::uint64_t> DiskStore::write_if_needed(const Write& job) {
  {
    const std::lock_guard lock(mutex_);
    if (files_.covers({job.head.group, job.head.tokens})) return std::nullopt;
    files_.shrink(options_.bytes_max - bytes_of(job.cells));
  }
  const auto bytes = write_cell_file(path_of(job.file), key_, job.head, *job.cells);
  if (!bytes && !std::exchange(complained_, true))
    log::warning("runner: {}", bytes.error().message);
  if (!bytes) return std::nullopt;
  complained_ = false;
  return static_cast<std::uint64_t>(*bytes);
}

void DiskStore::read(Read job) {
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = pending_.find(job.file); found != pending_.end())
      pending = found->second;
  }
  if (pending)
    return deliver_(job.ticket, CellFile{.head = pending->head, .cells = *pending->cells});
  auto file = read_cell_file(path_of(job.file), key_);
  if (file) return deliver_(job.ticket, std::move(*file));
  if (file.error().code != Code::NotFound) log::warning("runner: {}", file.error().message);
  {
    const std::lock_guard lock(mutex_);
    files_.forget(job.file);
  }
  deliver_(job.ticket, std::nullopt);
}

}  // namespace flotilla::runner
