#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "model/gguf_header.h"

namespace flotilla::model {

// Guesses of one pass, over all sequences, of a runner that speculates: as many as a pass of a few
// sequences computes for little more than the weights' reading. Each takes memory for logits.
inline constexpr int kDraftTokensMax = 16;

struct FootprintRequest {
  int width = 1;
  std::int64_t context = 0;  // tokens of one sequence; 0 = what the model was trained for
  std::int64_t window = 0;   // KV cells of all sequences, if more than width × context
  std::string_view kv_type = "f16";
  int draft_tokens = 0;  // drafted in one pass
};

// Memory that a runner with our kernels will take, in bytes. Weights are exact, KV is exact for
// full attention (an upper bound for windowed layers), buffers are an estimate of the engine's
// scratch and of ours.
struct Footprint {
  std::int64_t weights = 0;
  std::int64_t kv = 0;
  std::int64_t buffers = 0;
  std::int64_t context = 0;
  std::int64_t total() const { return weights + kv + buffers; }
};

// InvalidArgument: an unknown kv_type, a width out of range, a context out of it or beyond what the
// model was trained for. `weights`: of all parts.
Result<Footprint> footprint(const GgufHeader& header, std::int64_t weights,
                            const FootprintRequest& request);

}  // namespace flotilla::model
