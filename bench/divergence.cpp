// divergence --reference F32.gguf --model FILE --text FILE [--threads N] [--tokens N]
// Mean Kullback-Leibler divergence of the model's next-token distributions from those of the same
// weights in F32, with llama.cpp's kernels and with ours: 16 streams of the text, token by token.
// Ours are good when their figure is within 3 % of the stock one.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/llama_engine.h"

namespace flotilla::engine {
namespace {

constexpr int kStreams = 16;

LoadedModel load(const std::string& file, Kernels kernels, int threads, int context) {
  LoadOptions options;
  options.model = file;
  options.kernels = kernels;
  options.threads = threads;
  options.width = kStreams;
  options.context = context;
  auto model = load_llama(options, {});
  if (!model) {
    std::fprintf(stderr, "divergence: %s\n", model.error().message.c_str());
    std::exit(1);
  }
  std::printf("%s: %s\n", file.c_str(), model->engine->info().numerics.c_str());
  return std::move(*model);
}

std::vector<double> log_probabilities(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  std::vector<double> result;
  result.reserve(logits.size());
  for (const float logit : logits) result.push_back(double{logit} - largest - std::log(sum));
  return result;
}

double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return sum;
}

// All streams' token `at`.
void step(Engine& engine, const std::vector<std::vector<Token>>& streams, std::size_t at) {
  std::vector<Chunk> chunks;
  for (int slot = 0; slot < kStreams; ++slot) {
    chunks.push_back({.slot = slot,
                      .pos = static_cast<int>(at),
                      .tokens = std::span(streams[slot]).subspan(at, 1),
                      .wants_logits = true});
  }
  if (engine.decode(chunks) == StepOutcome::Done) return;
  std::fputs("divergence: a pass failed\n", stderr);
  std::exit(1);
}

int run(int argc, char** argv) {
  std::string reference;
  std::string file;
  std::string text_file;
  int threads = 2;
  int tokens = 4096;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--reference") reference = argv[i + 1];
    if (name == "--model") file = argv[i + 1];
    if (name == "--text") text_file = argv[i + 1];
    if (name == "--threads") threads = std::stoi(argv[i + 1]);
    if (name == "--tokens") tokens = std::stoi(argv[i + 1]);
  }
  log::start("divergence", log::Level::Warning);
  std::ifstream in(text_file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const int length = (tokens + kStreams - 1) / kStreams;
  LoadedModel exact = load(reference, Kernels::Stock, threads, length);
  LoadedModel stock = load(file, Kernels::Stock, threads, length);
  LoadedModel ours = load(file, Kernels::Flotilla, threads, length);
  const std::vector<Token> all = exact.tokenizer->tokenize(text, false, false);
  if (all.size() < std::size_t{kStreams} * static_cast<std::size_t>(length)) {
    std::fprintf(stderr, "divergence: the text has %zu tokens only\n", all.size());
    return 1;
  }
  std::vector<std::vector<Token>> streams;
  for (int i = 0; i < kStreams; ++i) {
    const auto begin = all.begin() + std::ptrdiff_t{i} * length;
    streams.emplace_back(begin, begin + length);
  }
  double sums[2] = {};
  for (int at = 0; at < length; ++at) {
    for (LoadedModel* model : {&exact, &stock, &ours}) step(*model->engine, streams, at);
    for (std::size_t i = 0; i < kStreams; ++i) {
      const auto p = log_probabilities(exact.engine->logits(i));
      sums[0] += divergence(p, log_probabilities(stock.engine->logits(i)));
      sums[1] += divergence(p, log_probabilities(ours.engine->logits(i)));
    }
  }
  const double count = kStreams * length;
  std::printf("tokens %d\nstock %.6f\nflotilla %.6f\nratio %.4f\n", kStreams * length,
              sums[0] / count, sums[1] / count, sums[1] / sums[0]);
  return sums[1] <= 1.03 * sums[0] ? 0 : 1;
}

}  // namespace
}  // namespace flotilla::engine

int main(int argc, char** argv) { return flotilla::engine::run(argc, argv); }
