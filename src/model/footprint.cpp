#include "model/footprint.h"

#include <algorithm>

#include <fmt/format.h>

namespace flotilla::model {
namespace {

constexpr int kWidthMax = 64;
constexpr std::int64_t kContextMax = std::int64_t{1} << 24;
constexpr std::int64_t kPassTokens = 512;  // that the engine computes at once
constexpr std::int64_t kCellsMultiple = 256;
constexpr std::int64_t kProgram = std::int64_t{26} << 20;  // code, libraries, threads, sockets
constexpr std::int64_t kTextEntry = 290;  // of the vocabulary: a text, both ways, and its merge
constexpr std::int64_t kBytesMax = std::int64_t{1} << 60;

// Of 32 elements.
std::int64_t block_bytes(std::string_view kv_type) {
  if (kv_type == "f16") return 64;
  if (kv_type == "q8_0") return 34;
  return 0;
}

// A product that stays at kBytesMax when it would go beyond: a header may lie.
std::int64_t product(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0) return 0;
  return a > kBytesMax / b ? kBytesMax : a * b;
}

}  // namespace

Result<Footprint> footprint(const GgufHeader& header, std::int64_t weights,
                            const FootprintRequest& request) {
  const std::int64_t block = block_bytes(request.kv_type);
  if (block == 0)
    return fail(Code::InvalidArgument,
                fmt::format("kv_type \"{}\" must be f16 or q8_0", request.kv_type));
  if (request.width < 1 || request.width > kWidthMax)
    return fail(Code::InvalidArgument,
                fmt::format("width {} must be between 1 and {}", request.width, kWidthMax));
  if (request.context < 0 || request.context > kContextMax)
    return fail(Code::InvalidArgument,
                fmt::format("context {} must be between 0 and {}", request.context, kContextMax));
  // As the engine will.
  if (header.context_trained > 0 && request.context > header.context_trained)
    return fail(
        Code::InvalidArgument,
        fmt::format("context {} is larger than the {} tokens that the model was trained for",
                    request.context, header.context_trained));

  Footprint need;
  // Embeddings that are the head, too, are kept twice: as rows, and packed for products.
  need.weights = std::min(kBytesMax, weights + (header.has_output ? 0 : header.embedding_bytes));
  need.context =
      request.context > 0 ? request.context : std::min(header.context_trained, kContextMax);
  // A window too small for all slots makes fewer of them.
  const bool narrow =
      request.window > 0 && need.context > 0 && request.window < need.context * request.width;
  const std::int64_t width =
      narrow ? std::max<std::int64_t>(1, request.window / need.context) : request.width;
  const std::int64_t slot = (need.context + kCellsMultiple - 1) / kCellsMultiple * kCellsMultiple;
  const std::int64_t cells = narrow ? slot * width : std::max(request.window, slot * width);
  std::int64_t elements = 0;  // of one cell, all layers
  for (const std::int64_t heads : header.kv_heads)
    elements =
        std::min(kBytesMax,
                 elements + product(heads, std::min(kBytesMax, header.key_dim + header.value_dim)));
  need.kv = product(product(elements, cells) / 32, block) + product(header.state_bytes, width);
  need.kv = std::min(need.kv, kBytesMax);

  // Scratch of one forward pass: about fourteen embeddings a token, as floats (a feed-forward part
  // is three to four wide), the mask of a slot's cells as a float and as a half, and each slot's
  // and drafted token's logits twice.
  const std::int64_t pass = product(14 * std::min(header.embedding, kContextMax), 4) + 6 * slot;
  need.buffers = kProgram + product(header.vocabulary, kTextEntry) + product(pass, kPassTokens) +
                 product(product(header.vocabulary, 8), width + request.draft_tokens);
  need.buffers = std::min(need.buffers, kBytesMax);
  return need;
}

}  // namespace flotilla::model
