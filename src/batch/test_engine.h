#pragma once

#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"

namespace flotilla::batch {

// A strict engine for this folder's tests: the cache is the tokens themselves, the next token a
// hash of them, and every breach of the contract a CHECK.
class TestEngine final : public engine::Engine {
 public:
  static constexpr int kVocabulary = 97;

  // `period`: the model says the same again after so many tokens; 0: it never does.
  TestEngine(int width, int context, int step_tokens_max, int period = 0)
      : period_(period), slots_(width) {
    info_.width = width;
    info_.context = context;
    info_.step_tokens_max = step_tokens_max;
    info_.vocabulary = kVocabulary;
  }

  // What the model says after `tokens`. With a period it breaks off now and then.
  engine::Token next(std::span<const engine::Token> tokens) const {
    const auto period = static_cast<std::size_t>(period_);
    if (period > 0 && tokens.size() >= period && tokens.size() % 61 != 0)
      return tokens[tokens.size() - period];
    std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
    for (const engine::Token token : tokens) {
      hash = (hash ^ static_cast<std::uint64_t>(token)) * 0xBF58476D1CE4E5B9ULL;
      hash ^= hash >> 29;
    }
    return static_cast<engine::Token>(hash % kVocabulary);
  }

  const engine::EngineInfo& info() const override { return info_; }

  engine::StepOutcome decode(std::span<const engine::Chunk> chunks) override {
    CHECK(!chunks.empty());
    int tokens = 0;
    int previous = -1;
    logits_.clear();
    for (const engine::Chunk& chunk : chunks) {
      CHECK(chunk.slot > previous && chunk.slot < info_.width);
      CHECK(chunk.pos == length(chunk.slot) && !chunk.tokens.empty());
      previous = chunk.slot;
      tokens += static_cast<int>(chunk.tokens.size());
      auto& cells = slots_[chunk.slot];
      cells.insert(cells.end(), chunk.tokens.begin(), chunk.tokens.end());
      CHECK(length(chunk.slot) <= info_.context);
      auto& rows = logits_.emplace_back();
      if (!chunk.wants_logits) continue;
      CHECK(static_cast<std::size_t>(chunk.drafted) < chunk.tokens.size());
      for (int after = chunk.drafted; after >= 0; --after) {
        rows.emplace_back(kVocabulary, 0.0F);
        rows.back()[next(std::span(cells).first(cells.size() - after))] = 1;
      }
    }
    CHECK(tokens <= info_.step_tokens_max);
    return engine::StepOutcome::Done;
  }
  std::span<const float> logits(std::size_t index) const override {
    return logits_.at(index).back();
  }
  std::span<const float> logits(std::size_t index, std::size_t drafted) const override {
    return logits_.at(index).at(drafted);
  }
  std::span<const float> vector(std::size_t index) const override { return logits(index); }

  int length(int slot) const override { return static_cast<int>(slots_.at(slot).size()); }
  void truncate(int slot, int length) override {
    CHECK(length <= this->length(slot));
    slots_[slot].resize(length);
  }
  Result<void> move(int from, int to) override {
    CHECK(slots_.at(to).empty() && !slots_.at(from).empty());
    slots_[to].swap(slots_[from]);
    return {};
  }
  Result<std::vector<std::byte>> save(int slot) const override {
    const auto bytes = std::as_bytes(std::span(slots_.at(slot)));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  Result<void> restore(int slot, std::span<const std::byte> state) override {
    CHECK(slots_.at(slot).empty());
    slots_[slot].resize(state.size() / sizeof(engine::Token));
    std::memcpy(slots_[slot].data(), state.data(), state.size());
    return {};
  }
  std::string trim_memory() override { return {}; }
  void request_abort() noexcept override {}

 private:
  engine::EngineInfo info_;
  int period_;
  std::vector<std::vector<engine::Token>> slots_;
  std::vector<std::vector<std::vector<float>>> logits_;  // by chunk of the last pass, by token
};

}  // namespace flotilla::batch
