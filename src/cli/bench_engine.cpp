#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/bench.h"
#include "cli/server_access.h"
#include "engine/grammar.h"
#include "engine/llama_engine.h"
#include "engine/sampler.h"
#include "platform/cpu_info.h"

namespace flotilla::cli {
namespace {

struct EngineFlags {
  engine::LoadOptions load;
  std::string model;
  int prompt_tokens = 7800;
  int decode_steps = 60;
  int rounds = 1;
  int threads = 0;
  bool chunks = false;
  bool json = false;
};

std::vector<engine::Token> some_tokens(int count, int vocabulary) {
  std::vector<engine::Token> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back((1000 + i * 37) % vocabulary);
  return tokens;
}

// A prompt in slot 0 by passes as large as the engine takes.
Duration prefill(engine::Engine& engine, const std::vector<engine::Token>& tokens,
                 const Clock& clock) {
  engine.truncate(0, 0);
  const Instant begin = clock.now();
  std::span<const engine::Token> left(tokens);
  while (!left.empty()) {
    const auto part =
        left.first(std::min(left.size(), static_cast<std::size_t>(engine.info().step_tokens_max)));
    left = left.subspan(part.size());
    const engine::Chunk chunk{
        .slot = 0, .pos = engine.length(0), .tokens = part, .wants_logits = left.empty()};
    if (engine.decode({&chunk, 1}) != engine::StepOutcome::Done) return {};
  }
  return clock.now() - begin;
}

// Median of passes that hold one token of each slot.
double decode_ms(engine::Engine& engine, int steps, const Clock& clock) {
  const std::vector<engine::Token> token = {1000};
  std::vector<double> took;
  for (int step = 0; step < steps; ++step) {
    std::vector<engine::Chunk> chunks;
    for (int slot = 0; slot < engine.info().width; ++slot) {
      chunks.push_back(
          {.slot = slot, .pos = engine.length(slot), .tokens = token, .wants_logits = true});
    }
    const Instant begin = clock.now();
    if (engine.decode(chunks) != engine::StepOutcome::Done) break;
    took.push_back(to_ms(clock.now() - begin));
  }
  std::ranges::sort(took);
  return took.empty() ? 0 : took[took.size() / 2];
}

// Median of passes in which all slots but the last decode and the last one prefills `chunk` tokens.
double mixed_ms(engine::Engine& engine, int chunk, int passes, const Clock& clock) {
  const int last = engine.info().width - 1;
  const std::vector<engine::Token> tokens =
      some_tokens(std::max(chunk, 1), engine.info().vocabulary);
  std::vector<double> took;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<engine::Chunk> chunks;
    for (int slot = 0; slot <= last; ++slot) {
      const int held = engine.length(slot);
      const int count = slot == last ? chunk : 1;
      if (held + count >= engine.info().context) engine.truncate(slot, 1);
      if (count == 0) continue;
      chunks.push_back({.slot = slot,
                        .pos = engine.length(slot),
                        .tokens = std::span(tokens).first(static_cast<std::size_t>(count)),
                        .wants_logits = slot != last});
    }
    const Instant begin = clock.now();
    if (engine.decode(chunks) != engine::StepOutcome::Done) return 0;
    took.push_back(to_ms(clock.now() - begin));
  }
  std::ranges::sort(took);
  return took[took.size() / 2];
}

void print_chunks(engine::Engine& engine, const Clock& clock) {
  fmt::print("{} slots decode beside a chunk of another:\n", engine.info().width - 1);
  const double alone = mixed_ms(engine, 0, 9, clock);
  for (const int chunk : {0, 1, 2, 4, 8, 16, 32, 64, 128}) {
    if (chunk + engine.info().width > engine.info().step_tokens_max) break;
    const double ms = mixed_ms(engine, chunk, 9, clock);
    fmt::print("{:>6} tokens {:>8.1f} ms{}\n", chunk, ms,
               chunk > 0 ? fmt::format("{:>8.2f} ms a token", (ms - alone) / chunk) : "");
  }
}

// Microseconds a token that its choice costs, beside the pass.
struct ChoiceCost {
  double free_us = 0;    // by the logits alone
  double guided_us = 0;  // held to a JSON object
};

constexpr const char* kJsonRules = R"(root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space (string ":" space value ("," space string ":" space value)*)? space "}"
array ::= "[" space (value ("," space value)*)? space "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})?
space ::= | " " | "\n"{1,2} [ \t]{0,20}
)";

// One slot's answer of `steps` tokens, drawn as requests are by default.
double choice_us(engine::Engine& engine, engine::Sampler sampler, int steps, const Clock& clock) {
  engine.truncate(0, 0);
  std::vector<engine::Token> token = {1};
  Duration took{};
  int made = 0;
  for (; made < steps; ++made) {
    const engine::Chunk chunk{
        .slot = 0, .pos = engine.length(0), .tokens = token, .wants_logits = true};
    if (engine.decode({&chunk, 1}) != engine::StepOutcome::Done) break;
    const Instant begin = clock.now();
    token[0] = sampler.sample(engine.logits(0), static_cast<std::uint64_t>(made));
    if (token[0] != engine::kNoToken) sampler.accept(token[0]);
    took += clock.now() - begin;
    if (token[0] == engine::kNoToken) break;
  }
  return made > 0 ? 1000 * to_ms(took) / made : 0;
}

ChoiceCost choice_cost(engine::LoadedModel& model, int steps, const Clock& clock) {
  engine::SamplingParams params;
  params.seed = 1;
  ChoiceCost cost;
  cost.free_us = choice_us(*model.engine, {params, {}}, steps, clock);
  auto grammar = model.grammars->make({.rules = kJsonRules});
  if (grammar) {
    cost.guided_us = choice_us(*model.engine, {params, {}, std::move(*grammar)}, steps, clock);
  }
  model.engine->truncate(0, 0);
  return cost;
}

int run_engine_command(EngineFlags& flags) {
  log::start("bench", log::parse_level("error"));
  flags.load.model = flags.model;
  flags.load.threads = flags.threads > 0 ? flags.threads : platform::usable_cores();
  auto model = engine::load_llama(flags.load, {});
  if (!model) return tell_error(model.error());
  engine::Engine& engine = *model->engine;
  const int context = engine.info().context;
  const int prompt = std::min(flags.prompt_tokens, context - flags.decode_steps - 1);
  if (prompt < 1) {
    return tell_error({.code = Code::InvalidArgument,
                       .message = fmt::format("a context of {} is too small for {} steps", context,
                                              flags.decode_steps)});
  }
  const SystemClock clock;
  const auto tokens = some_tokens(prompt, engine.info().vocabulary);
  std::vector<double> prefills;
  for (int round = 0; round < flags.rounds; ++round) {
    prefills.push_back(to_ms(prefill(engine, tokens, clock)));
  }
  std::ranges::sort(prefills);
  const double prefill_ms = prefills[prefills.size() / 2];
  engine.truncate(0, 0);
  const double step_ms = decode_ms(engine, flags.decode_steps, clock);
  const ChoiceCost choice = choice_cost(*model, flags.decode_steps, clock);
  const double prefill_rate = prefill_ms > 0 ? 1000 * prompt / prefill_ms : 0;
  const double decode_rate = step_ms > 0 ? 1000 * engine.info().width / step_ms : 0;
  if (flags.json) {
    fmt::print(
        R"({{"model":"{}","width":{},"prompt_tokens":{},"prefill_ms":{:.1f},"prefill_tokens_per_s":{:.1f},)"
        R"("step_ms":{:.2f},"decode_tokens_per_s":{:.1f},"choice_us":{:.0f},"guided_choice_us":{:.0f}}})"
        "\n",
        engine.info().description, engine.info().width, prompt, prefill_ms, prefill_rate, step_ms,
        decode_rate, choice.free_us, choice.guided_us);
  } else {
    fmt::print(
        "{}: {} tokens prefilled in {:.2f} s ({:.0f} tokens/s); {} slots decode in {:.2f} ms "
        "a pass ({:.0f} tokens/s)\n",
        engine.info().description, prompt, prefill_ms / 1000, prefill_rate, engine.info().width,
        step_ms, decode_rate);
    fmt::print("the choice of a token takes {:.0f} us, of one held to a JSON object {:.0f} us\n",
               choice.free_us, choice.guided_us);
    if (flags.chunks && engine.info().width > 1) print_chunks(engine, clock);
  }
  return 0;
}

}  // namespace

void add_bench_engine(const App& bench, CommandResult& result) {
  const auto engine = bench.add_subcommand(
      "engine",
      "Loads a model in this process and prints what the engine does without a scheduler or a\n"
      "server: the time that `bench stall --engine-alone-ms` compares with.\n\n"
      "Example:\n"
      "  flotilla bench engine SmolLM2-135M-Instruct.Q4_1.gguf --width 4");
  auto flags = std::make_shared<EngineFlags>();
  flags->load.width = 8;
  engine.add_option("model", flags->model, "GGUF file").required();
  engine.add_option("--width", flags->load.width, "Slots that decode together")
      .between(1, 64)
      .show_default();
  engine.add_option("--context", flags->load.context, "Tokens of a slot; 0 = the model's own")
      .not_negative();
  engine.add_option("--threads", flags->threads, "Threads that compute; 0 = all usable cores")
      .between(0, 1024);
  engine.add_option("--prompt-tokens", flags->prompt_tokens, "Tokens to prefill")
      .between(1, 10'000'000)
      .show_default();
  engine.add_option("--rounds", flags->rounds, "Prefills, of which the median is shown")
      .between(1, 100)
      .show_default();
  engine.add_flag("--chunks", flags->chunks, "Also what a prompt's chunk costs beside decoding");
  engine.add_flag("--json", flags->json, "One line of JSON");
  engine.callback([flags, &result] { result.exit_code = run_engine_command(*flags); });
}

}  // namespace flotilla::cli
