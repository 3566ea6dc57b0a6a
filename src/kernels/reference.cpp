#include "kernels/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/source_block.h"

namespace flotilla::kernels::reference {
namespace {

int zero_point(WeightType type) {
  switch (type) {
    case WeightType::Q4_0: return 8;
    case WeightType::Q8_0: return 128;
    case WeightType::Q6_K: return 32;
    default: return 0;
  }
}

bool has_minimum(WeightType type) { return type == WeightType::Q4_1 || type == WeightType::Q4_K; }

// Negative for Q4_K, whose minima are subtracted.
float minimum_of(WeightType type, const SourceBlock& block) {
  const float outer = f16_to_float(block.outer_minimum);
  return type == WeightType::Q4_1 ? outer : -outer * static_cast<float>(block.minimum);
}

void attend_row(const AttentionCall& call, int stream, int row, int head) {
  const int kv_head = head / (call.heads / call.kv_heads);
  const std::uint16_t* mask = call.mask + stream * call.mask_stream + row * call.mask_row;
  const float* query =
      call.query + stream * call.query_stream + row * call.query_row + head * call.query_head;
  const std::uint16_t* keys = call.key + stream * call.key_stream + kv_head * call.key_head;
  const std::uint16_t* values = call.value + stream * call.value_stream + kv_head * call.value_head;
  const auto count = static_cast<std::size_t>(call.cells);
  std::vector<double> scores(count, -HUGE_VAL);
  for (int cell = 0; cell < call.cells; ++cell) {
    if (f16_to_float(mask[cell]) == -HUGE_VALF) continue;
    double dot = 0;
    for (int i = 0; i < call.size; ++i) {
      dot += double{query[i]} * double{f16_to_float(keys[cell * call.key_cell + i])};
    }
    scores[cell] = dot * double{call.scale};
    if (call.soft_cap != 0) {
      scores[cell] = double{call.soft_cap} * std::tanh(scores[cell] / double{call.soft_cap});
    }
  }
  const double largest = count == 0 ? 0.0 : *std::ranges::max_element(scores);
  std::vector<double> sums(static_cast<std::size_t>(call.size));
  double total = 0;
  for (int cell = 0; cell < call.cells; ++cell) {
    if (scores[cell] == -HUGE_VAL) continue;
    const double weight = std::exp(scores[cell] - largest);
    total += weight;
    for (int i = 0; i < call.size; ++i) {
      sums[i] += weight * double{f16_to_float(values[cell * call.value_cell + i])};
    }
  }
  float* output =
      call.output +
      ((std::ptrdiff_t{stream} * call.stream_rows + row) * call.heads + head) * call.size;
  for (int i = 0; i < call.size; ++i) {
    output[i] = total == 0 ? 0.0F : static_cast<float>(sums[i] / total);
  }
}

}  // namespace

float f16_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  float value = 0;
  if (exponent == 31) {
    value = mantissa == 0 ? HUGE_VALF : std::nanf("");
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

std::uint16_t float_to_f16(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float size = std::abs(value);
  if (!(size < 65520.0F)) return sign | (std::isnan(value) ? 0x7e00 : 0x7c00);
  const int exponent = size < 0x1p-14F ? -14 : std::ilogb(size);
  const auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // A mantissa that rounds up to 2048 carries into the exponent by itself.
  const int biased = size < 0x1p-14F ? 0 : exponent + 14;
  return static_cast<std::uint16_t>(sign | (biased * 1024 + mantissa));
}

BlockScale quantize(const float* x, std::int8_t* q) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(x[i]));
  BlockScale block{};
  block.scale = largest / 127.0F;
  const float inverse = block.scale != 0 ? 1.0F / block.scale : 0.0F;
  int sums[2] = {};
  for (int i = 0; i < kBlock; ++i) {
    q[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
    sums[i / 16] += q[i];
  }
  block.scaled_sum = block.scale * static_cast<float>(sums[0] + sums[1]);
  block.start = -8 * (sums[0] + sums[1]);
  block.start_high = -8 * sums[1];
  return block;
}

void multiply(WeightType type, const std::byte* source, int rows, int depth, const float* x,
              int columns, float* output) {
  const int blocks = depth / kBlock;
  std::vector<std::int8_t> quants(static_cast<std::size_t>(depth));
  std::vector<BlockScale> scales(static_cast<std::size_t>(blocks));
  for (int column = 0; column < columns; ++column) {
    const float* from = x + std::ptrdiff_t{column} * depth;
    for (int b = 0; b < blocks; ++b) scales[b] = quantize(from + b * kBlock, &quants[b * kBlock]);
    for (int row = 0; row < rows; ++row) {
      const std::byte* bytes =
          source + static_cast<std::size_t>(row) * source_row_bytes(type, depth);
      float sum = 0;
      for (int b = 0; b < blocks; ++b) {
        const SourceBlock block = read_block(type, bytes, b);
        int dots[2] = {};
        for (int i = 0; i < kBlock; ++i) {
          dots[i / 16] += (block.values[i] - zero_point(type)) * quants[b * kBlock + i];
        }
        const float outer = f16_to_float(block.outer_scale);
        const float scale = scales[b].scale;
        if (type == WeightType::Q6_K) {
          for (int half = 0; half < 2; ++half) {
            const float weight_scale = outer * static_cast<float>(block.scale[half]);
            sum = std::fma(static_cast<float>(dots[half]), weight_scale * scale, sum);
          }
          continue;
        }
        const float weight_scale = outer * static_cast<float>(block.scale[0]);
        sum = std::fma(static_cast<float>(dots[0] + dots[1]), weight_scale * scale, sum);
        if (has_minimum(type)) sum = std::fma(minimum_of(type, block), scales[b].scaled_sum, sum);
      }
      output[std::ptrdiff_t{column} * rows + row] = sum;
    }
  }
}

double weight(WeightType type, const std::byte* row, int index) {
  const SourceBlock block = read_block(type, row, index / kBlock);
  const int at = index % kBlock;
  const double scale =
      double{f16_to_float(block.outer_scale)} * block.scale[type == WeightType::Q6_K ? at / 16 : 0];
  const double value = scale * (block.values[at] - zero_point(type));
  return has_minimum(type) ? value + double{minimum_of(type, block)} : value;
}

void attend(const AttentionCall& call) {
  for (int stream = 0; stream < call.streams; ++stream) {
    for (int row = 0; row < call.stream_rows; ++row) {
      for (int head = 0; head < call.heads; ++head) attend_row(call, stream, row, head);
    }
  }
}

}  // namespace flotilla::kernels::reference
