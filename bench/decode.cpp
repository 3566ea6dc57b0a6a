// decode --model FILE [--threads N] [--kernels flotilla|stock] [--streams 1,8,...] [--prompt N]
// [--tokens N]
//        [--prefill N] [--rounds N]
// Tokens a second of the engine alone: `--prefill` tokens of one prompt, then `--tokens` steps of
// that many streams, each behind `--prompt` tokens, as llama-batched-bench -npp P -ntg T -npl S
// does. One line a figure: "prefill 512: 2345.6" and "streams 8: 1234.5", the median of the rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/llama_engine.h"

namespace flotilla::engine {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Options {
  LoadOptions load;
  std::vector<int> streams{1, 2, 4, 8, 16, 32};
  int prompt = 128;
  int tokens = 64;
  int prefill = 512;
  int rounds = 5;
};

class Bench {
 public:
  Bench(Engine& engine, const Options& options) : engine_(engine), options_(options) {}

  double prefill() {
    empty();
    const std::vector<Token> prompt = tokens(options_.prefill);
    const Instant start = clock_.now();
    step({{0, 0, prompt, true}});
    return options_.prefill / seconds(clock_.now() - start);
  }

  void fill_slots() {
    empty();
    const std::vector<Token> prompt = tokens(options_.prompt);
    for (int slot = 0; slot < engine_.info().width; ++slot) step({{slot, 0, prompt, false}});
  }

  double streams(int count) {
    for (int slot = 0; slot < count; ++slot) engine_.truncate(slot, options_.prompt);
    const Instant start = clock_.now();
    for (int i = 0; i < options_.tokens; ++i) {
      const std::vector<Token> next = tokens(count);
      std::vector<Chunk> chunks;
      for (int slot = 0; slot < count; ++slot) {
        chunks.push_back({slot, engine_.length(slot), std::span(next).subspan(slot, 1), true});
      }
      step(chunks);
    }
    return count * options_.tokens / seconds(clock_.now() - start);
  }

 private:
  std::vector<Token> tokens(int count) {
    std::vector<Token> tokens(static_cast<std::size_t>(count));
    for (Token& token : tokens) {
      token = static_cast<Token>(random_.below(std::uint64_t(engine_.info().vocabulary)));
    }
    return tokens;
  }
  void empty() {
    for (int slot = 0; slot < engine_.info().width; ++slot) engine_.truncate(slot, 0);
  }
  void step(const std::vector<Chunk>& chunks) {
    if (engine_.decode(chunks) == StepOutcome::Done) return;
    std::fputs("decode: a pass failed\n", stderr);
    std::exit(1);
  }

  Engine& engine_;
  const Options& options_;
  SystemClock clock_;
  Random random_{1};
};

std::vector<int> numbers(const std::string& text) {
  std::vector<int> result;
  for (std::size_t at = 0; at < text.size();
       at = text.find_first_of(',', at), at += at < text.size()) {
    result.push_back(std::stoi(text.substr(at)));
  }
  return result;
}

int run(int argc, char** argv) {
  Options options;
  options.load.threads = 2;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--model") options.load.model = value;
    if (name == "--threads") options.load.threads = std::stoi(value);
    if (name == "--kernels")
      options.load.kernels = value == "stock" ? Kernels::Stock : Kernels::Flotilla;
    if (name == "--streams") options.streams = numbers(value);
    if (name == "--prompt") options.prompt = std::stoi(value);
    if (name == "--tokens") options.tokens = std::stoi(value);
    if (name == "--prefill") options.prefill = std::stoi(value);
    if (name == "--rounds") options.rounds = std::stoi(value);
  }
  log::start("decode", log::Level::Warning);
  options.load.width = std::ranges::max(options.streams);
  options.load.context = std::max(options.prompt + options.tokens, options.prefill);
  options.load.step_tokens_max = std::max({options.prompt, options.prefill, options.load.width});
  auto model = load_llama(options.load, {});
  if (!model) {
    std::fprintf(stderr, "decode: %s\n", model.error().message.c_str());
    return 1;
  }
  Bench bench(*model->engine, options);
  std::printf("numerics: %s, exact resume: %d\n", model->engine->info().numerics.c_str(),
              model->engine->info().exact_resume);
  bench.prefill();
  std::vector<double> prefill;
  std::map<int, std::vector<double>> streams;
  for (int round = 0; round < options.rounds; ++round) prefill.push_back(bench.prefill());
  bench.fill_slots();
  for (int round = 0; round < options.rounds; ++round) {
    for (const int count : options.streams) streams[count].push_back(bench.streams(count));
  }
  std::printf("prefill %d: %.1f\n", options.prefill, median(prefill));
  for (const auto& [count, rates] : streams)
    std::printf("streams %d: %.1f\n", count, median(rates));
  return 0;
}

}  // namespace
}  // namespace flotilla::engine

int main(int argc, char** argv) { return flotilla::engine::run(argc, argv); }
