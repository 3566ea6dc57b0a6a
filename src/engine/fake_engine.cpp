#include "engine/fake_engine.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "engine/chunk_contract.h"
#include "engine/fake_text.h"

namespace flotilla::engine {
namespace {

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// What a cell holds: its token, and the hash of all tokens up to it.
struct Cell {
  Token token = 0;
  std::uint64_t hash = 0;
};

void append(std::vector<Cell>& cells, Token token) {
  const std::uint64_t before = cells.empty() ? 0x9E3779B97F4A7C15ULL : cells.back().hash;
  cells.push_back({token, mix(before + static_cast<std::uint64_t>(token) + 1)});
}

// How many more bytes the character that the newest cells begin needs.
int missing_bytes(std::span<const Cell> cells) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, cells.size()); ++back) {
    const Token byte = cells[cells.size() - back].token;
    if (byte >= 0xC0 && byte < 0xF5) {
      const int length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      return std::max(0, length - static_cast<int>(back));
    }
    if (byte < 0x80 || byte > 0xBF) return 0;
  }
  return 0;
}

bool ends_with(std::span<const Cell> cells, std::string_view text) {
  if (cells.size() < text.size()) return false;
  const auto last = cells.last(text.size());
  return std::ranges::equal(last, text, [](const Cell& cell, char c) {
    return cell.token == static_cast<unsigned char>(c);
  });
}

// Far below what can follow, but a logit_bias of +100 still wins.
constexpr float kImpossible = -40.0F;

void fill_logits(std::span<const Cell> cells, int period, std::span<float> logits) {
  std::ranges::fill(logits, kImpossible);
  const std::uint64_t hash = cells.back().hash;
  const auto offer = [&](Token token, float bonus) {
    const std::uint64_t bits = mix(hash ^ (static_cast<std::uint64_t>(token) << 32));
    logits[static_cast<std::size_t>(token)] = static_cast<float>(bits >> 40) * 0x1.0p-22F + bonus;
  };
  if (missing_bytes(cells) > 0) {
    // 0xA0-0xAF is right after any of the first bytes below, whatever the character's length.
    for (Token byte = 0xA0; byte < 0xB0; ++byte) offer(byte, 0);
    return;
  }
  for (Token letter = 'a'; letter <= 'z'; ++letter) offer(letter, 0);
  offer(' ', 0.5F);
  offer(0xC3, -0.2F);  // two bytes: à, é, ï …
  offer(0xE4, -0.2F);  // three: Chinese
  offer(0xF0, -0.2F);  // four: an ancient script
  offer(kFakeTurnEnd, hash % 97 == 0 ? 8.0F : -8.0F);
  const auto back = static_cast<std::size_t>(period);
  if (period <= 0 || cells.size() < back || hash % 16 == 0) return;
  const Token before = cells[cells.size() - back].token;
  if (before >= 'a' && before <= 'z') offer(before, 12);
}

// As long as nothing else here, so that a mix-up shows.
constexpr int kVectorLength = 12;

std::vector<float> make_vector(std::span<const Cell> cells) {
  std::vector<float> out;
  for (std::uint64_t i = 1; i <= kVectorLength; ++i)
    out.push_back(static_cast<float>(mix(cells.back().hash ^ i) >> 40) * 0x1.0p-23F - 1);
  return out;
}

constexpr std::array<char, 8> kSaveMagic = {'f', 'a', 'k', 'e', 'c', 'e', 'l', 'l'};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(const FakeOptions& options)
      : options_(options), slots_(static_cast<std::size_t>(options.width)) {
    CHECK(options.width >= 1 && options.context >= 1 && options.step_tokens_max >= options.width);
    info_.description = "synthetic";
    info_.quantization = "none";
    info_.vocabulary = kFakeVocabulary;
    info_.context_trained = options.context;
    info_.context = options.context;
    info_.width = options.width;
    info_.step_tokens_max = options.step_tokens_max;
    info_.kv_bytes = static_cast<std::int64_t>(sizeof(Cell)) * options.width * options.context;
    info_.numerics = "synthetic";
    info_.exact_resume = true;
    info_.vector_length = kVectorLength;
    info_.whole_prompts = options.whole_prompts;
    info_.generates_text = info_.can_cut = !options.whole_prompts;
    info_.draft_tokens_max = options.whole_prompts ? 0 : options.draft_tokens_max;
  }

  const EngineInfo& info() const override { return info_; }

  StepOutcome decode(std::span<const Chunk> chunks) override {
    const int tokens = check_chunks(*this, chunks);
    for (const Chunk& chunk : chunks)
      CHECK(!options_.whole_prompts || (chunk.pos == 0 && chunk.wants_vector));
    logits_.clear();
    vectors_.clear();
    const bool aborted = !wait(options_.per_step + options_.per_token * tokens);
    // Like a real backend, which stops between parts of a pass: the first half is in the cache.
    const std::size_t done = aborted ? chunks.size() / 2 : chunks.size();
    for (const Chunk& chunk : chunks.first(done)) {
      for (const Token token : chunk.tokens) {
        append(cells(chunk.slot), token);
        if (!options_.crash_on.empty() && ends_with(cells(chunk.slot), options_.crash_on))
          std::raise(SIGSEGV);
      }
    }
    if (aborted) return StepOutcome::Aborted;
    for (const Chunk& chunk : chunks) {
      auto& rows = logits_.emplace_back();
      vectors_.emplace_back();
      if (!chunk.wants_logits) continue;
      const std::span<const Cell> all = cells(chunk.slot);
      for (int after = chunk.drafted; after >= 0; --after) {
        rows.emplace_back(kFakeVocabulary);
        fill_logits(all.first(all.size() - static_cast<std::size_t>(after)), options_.period,
                    rows.back());
      }
      if (chunk.wants_vector) vectors_.back() = make_vector(all);
    }
    return StepOutcome::Done;
  }

  std::span<const float> logits(std::size_t index) const override {
    CHECK(index < logits_.size() && !logits_[index].empty());
    return logits_[index].back();
  }
  std::span<const float> logits(std::size_t index, std::size_t drafted) const override {
    CHECK(index < logits_.size() && drafted < logits_[index].size());
    return logits_[index][drafted];
  }
  std::span<const float> vector(std::size_t index) const override {
    CHECK(index < vectors_.size() && !vectors_[index].empty());
    return vectors_[index];
  }

  int length(int slot) const override { return static_cast<int>(cells(slot).size()); }

  void truncate(int slot, int length) override {
    CHECK(length >= 0 && length <= this->length(slot));
    cells(slot).resize(static_cast<std::size_t>(length));
  }

  Result<void> move(int from, int to) override {
    CHECK(from != to && cells(to).empty());
    cells(to).swap(cells(from));
    return {};
  }

  Result<std::vector<std::byte>> save(int slot) const override {
    std::vector<std::byte> state(kSaveMagic.size() + cells(slot).size() * sizeof(Token));
    std::memcpy(state.data(), kSaveMagic.data(), kSaveMagic.size());
    std::byte* out = state.data() + kSaveMagic.size();
    for (const Cell& cell : cells(slot)) {
      std::memcpy(out, &cell.token, sizeof(Token));
      out += sizeof(Token);
    }
    return state;
  }

  Result<void> restore(int slot, std::span<const std::byte> state) override {
    CHECK(cells(slot).empty());
    const auto bad = fail(Code::InvalidArgument, "the saved state is not whole");
    if (state.size() < kSaveMagic.size() ||
        std::memcmp(state.data(), kSaveMagic.data(), kSaveMagic.size()) != 0) {
      return bad;
    }
    state = state.subspan(kSaveMagic.size());
    const std::size_t count = state.size() / sizeof(Token);
    if (state.size() % sizeof(Token) != 0 || count > static_cast<std::size_t>(info_.context)) {
      return bad;
    }
    for (; !state.empty(); state = state.subspan(sizeof(Token))) {
      Token token = 0;
      std::memcpy(&token, state.data(), sizeof(Token));
      append(cells(slot), token);
    }
    return {};
  }

  std::string trim_memory() override {
    std::string what;
    for (auto& cells : slots_) {
      if (cells.empty() && cells.capacity() > 0) what = "cells of empty slots";
      cells.shrink_to_fit();
    }
    return what;
  }

  void request_abort() noexcept override {
    const std::lock_guard lock(mutex_);
    abort_ = true;
    abort_asked_.notify_all();
  }

 private:
  std::vector<Cell>& cells(int slot) {
    CHECK(slot >= 0 && slot < info_.width);
    return slots_[static_cast<std::size_t>(slot)];
  }
  const std::vector<Cell>& cells(int slot) const {
    CHECK(slot >= 0 && slot < info_.width);
    return slots_[static_cast<std::size_t>(slot)];
  }

  // false: an abort was asked for.
  bool wait(std::chrono::microseconds time) {
    std::unique_lock lock(mutex_);
    abort_asked_.wait_for(lock, time, [this] { return abort_; });
    return !std::exchange(abort_, false);
  }

  const FakeOptions options_;
  EngineInfo info_;
  std::vector<std::vector<Cell>> slots_;
  std::vector<std::vector<std::vector<float>>> logits_;  // by chunk of the last pass, by token
  std::vector<std::vector<float>> vectors_;
  std::mutex mutex_;
  std::condition_variable abort_asked_;
  bool abort_ = false;
};

}  // namespace

LoadedModel make_fake_model(const FakeOptions& options) {
  return {std::make_unique<FakeEngine>(options), make_fake_tokenizer(), make_fake_chat_template(),
          nullptr};
}

}  // namespace flotilla::engine
