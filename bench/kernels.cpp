// kernels [--rows N] [--depth N] [--set NAME] [--type NAME]
// Products alone, on one thread: giga multiply-adds a second by instruction set, weight type and
// columns; the best of seven. Weights are random: what they hold changes no time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ranges>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "kernels/matmul.h"

namespace flotilla::kernels {
namespace {

constexpr const char* kNames[] = {"Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"};

std::byte* aligned(std::size_t bytes) {
  return static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
}

class Bench {
 public:
  Bench(int rows, int depth) : rows_(rows), depth_(depth) {}

  void run(InstructionSet set, WeightType type) {
    if (depth_ % depth_unit(type) != 0) return;
    const MatmulKernels& kernels = *matmul_kernels(set);
    PackedMatrix weights{.type = type, .rows = rows_, .depth = depth_};
    std::byte* data = aligned(weights.bytes());
    weights.data = data;
    const std::vector<std::byte> source(static_cast<std::size_t>(rows_) *
                                        source_row_bytes(type, depth_));
    pack_groups(weights, data, source.data(), 0, groups_of(rows_));
    for (const int columns : {1, 2, 4, 8, 16, 32, 512}) measure(kernels, set, weights, columns);
    std::free(data);
  }

 private:
  double seconds(auto work) {
    double best = 1e9;
    for (int round = 0; round < 7; ++round) {
      const Instant start = clock_.now();
      work();
      best = std::min(best, std::chrono::duration<double>(clock_.now() - start).count());
    }
    return best;
  }

  void measure(const MatmulKernels& kernels, InstructionSet set, const PackedMatrix& weights,
               int columns) {
    Random random(1);
    std::vector<float> inputs(static_cast<std::size_t>(columns * depth_));
    for (float& input : inputs) input = static_cast<float>(random.uniform() - 0.5);
    std::vector<float> output(static_cast<std::size_t>(columns * rows_));
    std::byte* memory = aligned(Activations::bytes(columns, depth_));
    const Activations activations = Activations::in(memory, columns, depth_);
    const double quantize =
        seconds([&] { quantize_columns(kernels, activations, inputs.data(), depth_, 0, columns); });
    const double work = double(rows_) * depth_ * columns;
    const int repeats = std::max(1, static_cast<int>(3e8 / work));
    const double multiply = seconds([&] {
      for (int i = 0; i < repeats; ++i) {
        kernels.multiply(weights, activations, 0, groups_of(rows_),
                         {.data = output.data(), .column_stride = rows_});
      }
    });
    std::printf("%-10s %s columns %3d: %6.1f GMAC/s, quantising %6.2f us\n",
                std::string(name_of(set)).c_str(), kNames[static_cast<int>(weights.type)], columns,
                work * repeats / multiply / 1e9, quantize * 1e6);
    std::free(memory);
  }

  const int rows_;
  const int depth_;
  SystemClock clock_;
};

int run(int argc, char** argv) {
  int rows = 1536;
  int depth = 1536;
  std::string_view only_set;
  std::string_view only_type;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--rows") rows = std::stoi(argv[i + 1]);
    if (std::string(argv[i]) == "--depth") depth = std::stoi(argv[i + 1]);
    if (std::string(argv[i]) == "--set") only_set = argv[i + 1];
    if (std::string(argv[i]) == "--type") only_type = argv[i + 1];
  }
  Bench bench(rows, depth);
  for (const InstructionSet set : std::views::reverse(kInstructionSets)) {
    if (!has_instruction_set(set) || (!only_set.empty() && only_set != name_of(set))) continue;
    for (int type = 0; type < 5; ++type) {
      if (!only_type.empty() && only_type != kNames[type]) continue;
      bench.run(set, static_cast<WeightType>(type));
    }
  }
  return 0;
}

}  // namespace
}  // namespace flotilla::kernels

int main(int argc, char** argv) { return flotilla::kernels::run(argc, argv); }
