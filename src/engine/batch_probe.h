#pragma once

#include <string>

#include <llama.h>

#include "base/result.h"

namespace flotilla::engine {

// Most tokens of one of the probe's passes, which may be more than a tiny step has.
inline constexpr int kProbeTokensMax = 8;

// Computes a few sequences at different positions, some of them decoding and some beginning, in
// shared passes, and each of them alone: why the model's slots cannot share a pass; empty when they
// can. InvalidArgument: the model computes nothing usable at all. Leaves the memory full of it.
Result<std::string> probe_batch(llama_context* context, int width);

// Bytes of all slots' cells and states. From saved states, since libllama tells nobody.
std::int64_t measure_kv_bytes(llama_context* context, int width);

}  // namespace flotilla::engine
