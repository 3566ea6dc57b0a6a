#include "engine/chunk_contract.h"

#include "base/check.h"

namespace flotilla::engine {

int check_chunks(const Engine& engine, std::span<const Chunk> chunks) {
  const EngineInfo& info = engine.info();
  CHECK(!chunks.empty());
  int previous_slot = -1;
  std::size_t tokens = 0;
  int drafted = 0;
  for (const Chunk& chunk : chunks) {
    CHECK(chunk.slot > previous_slot && chunk.slot < info.width);
    CHECK(!chunk.tokens.empty() && chunk.pos == engine.length(chunk.slot));
    CHECK(chunk.tokens.size() <= static_cast<std::size_t>(info.context - chunk.pos));
    CHECK(chunk.wants_logits || (!chunk.wants_vector && chunk.drafted == 0));
    CHECK(chunk.drafted >= 0 && static_cast<std::size_t>(chunk.drafted) < chunk.tokens.size());
    for (const Token token : chunk.tokens) CHECK(token >= 0 && token < info.vocabulary);
    previous_slot = chunk.slot;
    tokens += chunk.tokens.size();
    drafted += chunk.drafted;
  }
  CHECK(drafted <= info.draft_tokens_max);
  CHECK(tokens <= static_cast<std::size_t>(info.step_tokens_max));
  return static_cast<int>(tokens);
}

}  // namespace flotilla::engine
