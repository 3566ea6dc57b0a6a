#include "engine/batch_probe.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/check.h"

namespace flotilla::engine {
namespace {

// Tokens [from, from + count) of slot's sequence.
struct ProbeChunk {
  int slot = 0;
  int from = 0;
  int count = 0;
};

using Logits = std::vector<float>;

llama_token token_at(int slot, int pos, int vocabulary) {
  return std::min(vocabulary - 1, 1 + pos + 11 * slot);
}

// The chunks in one pass; the logits of each one's last token, empty when it failed.
std::vector<Logits> probe_pass(llama_context* context, std::span<const ProbeChunk> chunks) {
  const llama_vocab* vocab = llama_model_get_vocab(llama_get_model(context));
  const int vocabulary = llama_vocab_n_tokens(vocab);
  llama_batch batch = llama_batch_init(kProbeTokensMax, 0, 1);
  std::vector<int> last;
  for (const ProbeChunk& chunk : chunks) {
    for (int pos = chunk.from; pos < chunk.from + chunk.count; ++pos) {
      CHECK(batch.n_tokens < kProbeTokensMax);
      const int at = batch.n_tokens++;
      batch.token[at] = token_at(chunk.slot, pos, vocabulary);
      batch.pos[at] = pos;
      batch.n_seq_id[at] = 1;
      batch.seq_id[at][0] = chunk.slot;
      batch.logits[at] = pos + 1 == chunk.from + chunk.count ? 1 : 0;
    }
    last.push_back(batch.n_tokens - 1);
  }
  std::vector<Logits> out;
  if (llama_decode(context, batch) == 0) {
    for (const int at : last) {
      const float* row = llama_get_logits_ith(context, at);
      out.emplace_back();
      if (row != nullptr) out.back().assign(row, row + vocabulary);
    }
  }
  llama_batch_free(batch);
  return out;
}

void clear(llama_context* context) { llama_memory_clear(llama_get_memory(context), false); }

// Different passes take different paths through the kernels, so bits differ; a slot that sees
// another's cells, or positions, differs by far more than this share of the spread.
bool similar(const Logits& a, const Logits& b) {
  if (a.empty() || a.size() != b.size()) return false;
  const auto [low, high] = std::ranges::minmax(a);
  float difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = std::max(difference, std::abs(a[i] - b[i]));
  return difference <= 0.1F * (high - low);
}

// How the sequences come together: slot 0 has begun when slot 1 comes, which is cut into two
// chunks; slot 2 comes beside the second; then all decode.
constexpr ProbeChunk kFirst[] = {{0, 0, 4}};
constexpr ProbeChunk kSecond[] = {{0, 4, 1}, {1, 0, 4}};
constexpr ProbeChunk kThird[] = {{0, 5, 1}, {1, 4, 2}, {2, 0, 3}};
constexpr ProbeChunk kFourth[] = {{0, 6, 1}, {1, 6, 1}, {2, 3, 1}};

std::span<const ProbeChunk> below(std::span<const ProbeChunk> chunks, int width) {
  return chunks.first(std::min(chunks.size(), static_cast<std::size_t>(width)));
}

}  // namespace

Result<std::string> probe_batch(llama_context* context, int width) {
  std::vector<Logits> alone;
  for (const ProbeChunk& last : below(kFourth, width)) {
    clear(context);
    const ProbeChunk prompt{last.slot, 0, last.from};
    const bool begun = !probe_pass(context, {&prompt, 1}).empty();
    const std::vector<Logits> decoded =
        begun ? probe_pass(context, {&last, 1}) : std::vector<Logits>{};
    if (decoded.empty() || decoded[0].empty()) {
      return fail(Code::InvalidArgument, "the model cannot compute: its first pass failed");
    }
    if (!std::ranges::all_of(decoded[0], [](float logit) { return std::isfinite(logit); })) {
      return fail(Code::InvalidArgument,
                  "the model computes no finite numbers: its file is probably damaged");
    }
    alone.push_back(decoded[0]);
  }
  if (width == 1) return {};
  clear(context);
  std::vector<Logits> together;
  using Pass = std::span<const ProbeChunk>;
  for (const Pass pass : {Pass(kFirst), Pass(kSecond), Pass(kThird), Pass(kFourth)}) {
    together = probe_pass(context, below(pass, width));
    if (together.empty()) return "the model cannot compute several sequences in one pass";
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    if (!similar(alone[i], together[i])) {
      return "the model's sequences influence each other in one pass";
    }
  }
  return {};
}

std::int64_t measure_kv_bytes(llama_context* context, int width) {
  constexpr std::int64_t kCellHeader = 12;  // a saved cell also has a position, a count and a slot
  const auto size_of = [&](int tokens) {
    clear(context);
    const ProbeChunk chunk{0, 0, tokens};
    probe_pass(context, {&chunk, 1});
    return static_cast<std::int64_t>(llama_state_seq_get_size(context, 0));
  };
  const std::int64_t one = size_of(1);
  const std::int64_t cell = std::max<std::int64_t>(0, size_of(2) - one - kCellHeader);
  const llama_model* model = llama_get_model(context);
  const bool state = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
  return cell * llama_n_ctx(context) + (state ? (one - cell) * width : 0);
}

}  // namespace flotilla::engine
