#pragma once

#include <span>

#include "engine/engine.h"

namespace flotilla::engine {

// CHECKs what decode() asks of its caller: libllama would abort on some breaches and quietly
// compute nonsense on others. Returns the number of tokens.
int check_chunks(const Engine& engine, std::span<const Chunk> chunks);

}  // namespace flotilla::engine
