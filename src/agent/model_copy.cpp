#include "agent/model_copy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "model/model_files.h"
#include "model/model_place.h"
#include "platform/files.h"
#include "platform/pipe_reader.h"

namespace flotilla::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::size_t kHashText = 64;
constexpr std::size_t kOrderMax = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kTellEvery{200};

api::CopyAnswer refused(const Error& error) {
  api::CopyAnswer answer;
  answer.error = error.message;
  return answer;
}

// A file that is there, by the name that it has in models_dir.
Result<fs::path> find_file(const api::CopyOrder& order) {
  auto place = model::place_for(order.path, order.models_dir, model::Folders::AsTheyAre);
  if (!place) return place;
  std::error_code failed;
  if (fs::is_regular_file(*place, failed)) return place;
  return fail(Code::NotFound, fmt::format("{} is not there any more", place->string()));
}

// Adds `bytes` of the file to `hash`, and what comes after the first `from` to `out`.
struct Reading {
  std::int64_t from = 0;
  const platform::Fd* out = nullptr;
  const platform::Fd* asker = nullptr;
};
Result<std::int64_t> read_into(Sha256& hash, const platform::Fd& file, const Reading& reading) {
  std::string buffer(kPiece, '\0');
  std::int64_t at = 0;
  for (;;) {
    if (reading.asker != nullptr && platform::is_abandoned(*reading.asker))
      return fail(Code::Cancelled, "nobody waits for it any more");
    const auto piece = platform::read_piece(file, buffer);
    if (!piece) return fail(piece.error());
    if (piece->empty()) return at;
    hash.add({piece->data(), piece->size()});
    const std::int64_t end = at + static_cast<std::int64_t>(piece->size());
    if (reading.out != nullptr && end > reading.from) {
      const auto skip = static_cast<std::size_t>(std::max<std::int64_t>(0, reading.from - at));
      if (auto sent = platform::write_piece(*reading.out, piece->subspan(skip)); !sent)
        return fail(sent.error());
    }
    at = end;
  }
}

// The order's line, byte by byte: what follows it is the file's.
Result<api::CopyOrder> read_order_line(const platform::Fd& in) {
  std::string line;
  std::array<char, 1> byte{};
  for (;;) {
    const auto piece = platform::read_piece(in, byte);
    if (!piece) return fail(piece.error());
    if (piece->empty() || line.size() > kOrderMax)
      return fail(Code::BadGateway, "the sender ended before it said what it sends");
    if (byte[0] == '\n') return api::parse_copy_order(line);
    line += byte[0];
  }
}

class Receiver {
 public:
  Receiver(const api::CopyOrder& order, fs::path place, platform::Fd part)
      : order_(order), place_(std::move(place)), part_(std::move(part)) {}

  Result<void> run(const platform::Fd& in, const std::function<void(std::int64_t)>& progress,
                   const platform::Fd* asker);

 private:
  Result<void> take(std::span<const char> bytes);
  Result<void> finish();

  const api::CopyOrder& order_;
  const fs::path place_;
  const platform::Fd part_;
  Sha256 hash_;
  std::int64_t have_ = 0;
  std::string theirs_;  // the sender's hash
};

Result<void> Receiver::take(std::span<const char> bytes) {
  const auto missing = static_cast<std::size_t>(order_.bytes - have_);
  const auto mine = bytes.first(std::min(bytes.size(), missing));
  if (auto written = platform::write_piece(part_, mine); !written)
    return fail(written.error().code,
                fmt::format("{}: {}", place_.string(), written.error().message));
  hash_.add({mine.data(), mine.size()});
  have_ += static_cast<std::int64_t>(mine.size());
  const auto rest = bytes.subspan(mine.size());
  theirs_.append(rest.data(), std::min(rest.size(), kHashText + 1 - theirs_.size()));
  return {};
}

Result<void> Receiver::finish() {
  if (have_ < order_.bytes || theirs_.size() < kHashText)
    return fail(Code::Unavailable,
                fmt::format("the sender ended after {} of {} bytes; what came is "
                            "kept, and the next sync goes on from there",
                            have_, order_.bytes));
  const fs::path part = model::part_file(place_);
  if (theirs_ != hex_text(hash_.finish())) {
    std::error_code ignored;
    fs::remove(part, ignored);
    return fail(Code::Conflict, fmt::format("{}: what came is not the file that was sent (its "
                                            "SHA-256 differs); it was dropped, sync it again",
                                            place_.string()));
  }
  return platform::put_in_place(part_, part, place_);
}

Result<void> Receiver::run(const platform::Fd& in,
                           const std::function<void(std::int64_t)>& progress,
                           const platform::Fd* asker) {
  const auto had = read_into(hash_, part_, {.asker = asker});
  if (!had) return fail(had.error());
  if (*had != order_.offset)
    return fail(Code::Conflict, fmt::format("{} of the file are there, not {}; sync it again", *had,
                                            order_.offset));
  have_ = *had;
  std::string buffer(kPiece, '\0');
  const SystemClock clock;
  Instant told = clock.now();
  progress(have_);
  for (;;) {
    const auto piece = platform::read_piece(in, buffer);
    if (!piece) return fail(piece.error());
    if (piece->empty()) break;
    if (auto taken = take(*piece); !taken) return taken;
    if (clock.now() - told < kTellEvery) continue;
    told = clock.now();
    progress(have_);
  }
  progress(have_);
  return finish();
}

int say(const api::CopyAnswer& answer) {
  platform::write_some(platform::duplicate(1), api::to_json(answer) + "\n");
  return answer.error.empty() ? 0 : 1;
}

}  // namespace

api::CopyAnswer list_files(const api::CopyOrder& order) {
  if (fs::path(order.model).is_absolute())
    return refused({.code = Code::InvalidArgument,
                    .message = fmt::format("{} is not named within a models folder", order.model)});
  const auto files = model::find_model(order.model, order.models_dir);
  if (!files) return refused(files.error());
  api::CopyAnswer answer;
  for (const fs::path& part : files->parts) {
    std::error_code failed;
    const auto bytes = fs::file_size(part, failed);
    answer.files.push_back({.path = part.lexically_relative(order.models_dir).string(),
                            .bytes = failed ? 0 : static_cast<std::int64_t>(bytes)});
  }
  return answer;
}

api::CopyAnswer look_at_files(const api::CopyOrder& order) {
  api::CopyAnswer answer;
  for (api::CopyFile file : order.files) {
    const auto place = model::place_for(file.path, order.models_dir, model::Folders::AsTheyAre);
    if (!place) return refused(place.error());
    std::error_code failed;
    const auto bytes = fs::file_size(*place, failed);
    file.whole = !failed && static_cast<std::int64_t>(bytes) == file.bytes;
    const fs::path part = model::part_file(*place);
    if (const auto have = fs::file_size(part, failed); !failed) {
      file.have = static_cast<std::int64_t>(have);
      // Of another file of this name.
      if (file.have > file.bytes && fs::remove(part, failed)) file.have = 0;
    }
    answer.files.push_back(std::move(file));
  }
  std::error_code failed;
  const auto space = fs::space(order.models_dir, failed);
  if (!failed) answer.free_bytes = static_cast<std::int64_t>(space.available);
  return answer;
}

api::CopyAnswer hash_file(const api::CopyOrder& order, const platform::Fd* asker) {
  const auto path = find_file(order);
  if (!path) return refused(path.error());
  const auto file = platform::open_to_read(*path);
  if (!file) return refused(file.error());
  Sha256 hash;
  if (const auto read = read_into(hash, *file, {.asker = asker}); !read)
    return refused(read.error());
  api::CopyAnswer answer;
  answer.hash = hex_text(hash.finish());
  return answer;
}

Result<void> send_file(const api::CopyOrder& order, const platform::Fd& out) {
  const auto path = find_file(order);
  if (!path) return fail(path.error());
  const auto file = platform::open_to_read(*path);
  if (!file) return fail(file.error());
  if (platform::file_bytes(*file) != order.bytes)
    return fail(Code::Conflict,
                fmt::format("{} has another size than it had a moment ago", path->string()));
  if (auto sent = platform::write_piece(out, order.to + "\n"); !sent) return sent;
  Sha256 hash;
  const auto read = read_into(hash, *file, {.from = order.offset, .out = &out, .asker = &out});
  if (!read) return fail(read.error());
  return platform::write_piece(out, hex_text(hash.finish()));
}

Result<void> receive_file(const platform::Fd& in,
                          const std::function<void(std::int64_t have)>& progress,
                          const platform::Fd* asker) {
  const auto order = read_order_line(in);
  if (!order) return fail(order.error());
  auto place = model::place_for(order->path, order->models_dir, model::Folders::Made);
  if (!place) return fail(place.error());
  auto part = platform::open_part(model::part_file(*place));
  if (!part) return fail(part.error());
  return Receiver(*order, std::move(*place), std::move(*part)).run(in, progress, asker);
}

int run_copy(api::CopyTask task) {
  platform::ignore_broken_pipes();
  const platform::Fd in = platform::duplicate(0);
  const platform::Fd out = platform::duplicate(1);
  if (task == api::CopyTask::Receive) {
    const auto tell = [](std::int64_t have) {
      api::CopyAnswer answer;
      answer.have = have;
      say(answer);
    };
    const auto received = receive_file(in, tell, &out);
    if (!received) return say(refused(received.error()));
    api::CopyAnswer done;
    done.done = true;
    return say(done);
  }
  const auto order = read_order_line(in);
  if (!order) return say(refused(order.error()));
  switch (task) {
    case api::CopyTask::List: return say(list_files(*order));
    case api::CopyTask::Look: return say(look_at_files(*order));
    case api::CopyTask::Hash: return say(hash_file(*order, &out));
    case api::CopyTask::Send:
    case api::CopyTask::Receive: break;
  }
  const auto sent = send_file(*order, out);
  if (!sent) log::error("{}", sent.error().message);  // its stdout is the file's
  return sent ? 0 : 1;
}

}  // namespace flotilla::agent
