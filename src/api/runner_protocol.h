#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/agent_frames.h"
#include "api/chat_chunks.h"
#include "base/result.h"

// What gateway and runner say to each other beside OpenAI's own words (protocol 1).
namespace flotilla::api {

inline constexpr int kRunnerProtocol = 1;

// Request headers. A gateway removes all that a client sent; a runner on TCP ignores them.
inline constexpr std::string_view kHeaderPrefix = "Flotilla-";
inline constexpr std::string_view kHeaderProtocol = "Flotilla-Protocol";
inline constexpr std::string_view kHeaderRequestId = "Flotilla-Request-Id";
inline constexpr std::string_view kHeaderAlias = "Flotilla-Alias";
inline constexpr std::string_view kHeaderCreated = "Flotilla-Created";  // unix s
inline constexpr std::string_view kHeaderNode = "Flotilla-Node";
inline constexpr std::string_view kHeaderQueuedMs = "Flotilla-Queued-Ms";
inline constexpr std::string_view kHeaderSeed = "Flotilla-Seed";  // decimal u64
inline constexpr std::string_view kHeaderCacheGroup = "Flotilla-Cache-Group";
inline constexpr std::string_view kHeaderResumeBytes = "Flotilla-Resume-Bytes";
inline constexpr std::string_view kHeaderDeadlineMs = "Flotilla-Deadline-Ms";  // to the first token
// Of an answer that is no stream.
inline constexpr std::string_view kHeaderPromptTokens = "Flotilla-Prompt-Tokens";

using TokenIds = std::vector<std::int32_t>;

// An answer so far, by choice: what a lost replica's token comments said. A choice that is listed
// has shown its role chunk, and exactly the text that its tokens allow. `finished`: choices whose
// finish chunk was shown too; they are not continued, their tokens count in the usage.
struct Resume {
  std::map<int, TokenIds> tokens;
  std::set<int> finished;
};

// {"0":[ids],"1":[ids],"finished":[0]}: goes before the client's body, its length in
// Flotilla-Resume-Bytes. Parsing checks 0 <= id < vocabulary and 0 <= choice < 128.
std::string resume_json(const Resume& resume);
Result<Resume> parse_resume(std::string_view json, int vocabulary);

// ": t CHOICE ID,ID…\n": the line before a chunk's data line.
void append_token_comment(std::string& out, int choice, const TokenIds& ids);
struct TokenComment {
  int choice = 0;
  TokenIds ids;
};
// Of a block's first line, without its line break; nullopt: another line.
std::optional<TokenComment> parse_token_comment(std::string_view line);
// The same for who reads many: the choice, and its ids in `ids`, whose memory serves again.
std::optional<int> read_token_comment(std::string_view line, TokenIds& ids);

// The choice whose finish chunk a block of ours holds; nullopt: another block.
std::optional<int> finished_choice(std::string_view block);

// The block ": u {…}\n\n": before the first chunk, so that what is cut off later is counted too,
// and before [DONE].
struct RunnerUsage {
  Usage usage;
  double ttft_ms = 0;
  double tokens_per_s = 0;
  double prompt_ms = 0;
  int prompt_passes = 0;
};
std::string usage_comment(const RunnerUsage& usage);
std::optional<RunnerUsage> parse_usage_comment(std::string_view line);

// A runner's passes since it started, counted by how long they took and how many sequences were in
// them. A count is of those up to the edge beside it and above the one before; the last of all
// beyond.
struct PassCounts {
  static constexpr std::array<double, 10> kMsEdges{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  static constexpr std::array<double, 7> kWidthEdges{1, 2, 4, 8, 16, 32, 64};

  void add(double ms, std::size_t width);
  bool operator==(const PassCounts&) const = default;

  std::array<std::uint64_t, kMsEdges.size() + 1> by_ms{};
  std::array<std::uint64_t, kWidthEdges.size() + 1> by_width{};
  double ms_sum = 0;
  std::uint64_t width_sum = 0;
};

// How a runner drafts tokens, and how many since it started.
struct RunnerDrafts {
  std::string mode = {};    // ngram; off: it cannot; empty: it was not asked to
  std::string reason = {};  // why it cannot
  std::int64_t drafted_tokens = 0;
  std::int64_t accepted_tokens = 0;
};

// GET /runner/events, one a data line.
struct RunnerEvent {
  std::uint64_t step = 0;  // stands still while work waits: the runner hangs
  double step_ms_max = 0;  // longest step of the last minute
  int running = 0;
  int waiting = 0;
  std::int64_t kv_free = 0;  // cells
  // Since it started, whatever became of the requests; a resumed prompt counts where it began.
  std::int64_t generated_tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of the prompts
  double tokens_per_s = 0;
  double step_overhead = 0;  // share of the last seconds' steps that is not the forward pass
  std::int64_t resident_bytes = 0;
  int trims = 0;             // looks for memory to give back (BG_CLEAR_CACHE_EVERY)
  std::string trimmed = {};  // what the last one gave back
  PassCounts passes = {};
  std::int64_t stored_bytes = 0;  // conversations that do not compute keep their cells there
  int stored = 0;
  std::int64_t disk_bytes = 0;  // of conversations for which memory has no room
  RunnerDrafts drafts = {};
};
std::string to_json(const RunnerEvent& event);
Result<RunnerEvent> parse_runner_event(std::string_view json);

// The lines of `flotilla runner --supervised`, with their line break.
std::string runner_line(const RunnerLine& line);

}  // namespace flotilla::api
