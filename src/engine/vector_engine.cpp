#include "engine/vector_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/chunk_contract.h"
#include "engine/llama_context.h"
#include "engine/llama_load.h"
#include "engine/llama_log.h"
#include "engine/tokenizer.h"

namespace flotilla::engine {
namespace {

// Tokens of one text, and so of a pass: libllama keeps scores of the whole vocabulary for each.
constexpr int kContextMax = 2048;

class VectorEngine final : public Engine {
 public:
  VectorEngine(ModelHandle model, ThreadPoolHandle threads, ContextHandle context, EngineInfo info)
      : model_(std::move(model)),
        threads_(std::move(threads)),
        context_(std::move(context)),
        info_(std::move(info)),
        lengths_(static_cast<std::size_t>(info_.width)),
        batch_(llama_batch_init(info_.step_tokens_max, 0, 1)) {
    llama_set_abort_callback(
        context_.get(),
        [](void* flag) {
          return static_cast<std::atomic<bool>*>(flag)->load(std::memory_order::relaxed);
        },
        &abort_);
  }
  ~VectorEngine() override { llama_batch_free(batch_); }
  VectorEngine(const VectorEngine&) = delete;
  VectorEngine& operator=(const VectorEngine&) = delete;

  const EngineInfo& info() const override { return info_; }

  StepOutcome decode(std::span<const Chunk> chunks) override {
    check_chunks(*this, chunks);
    vectors_.assign(chunks.size(), {});
    batch_.n_tokens = 0;
    for (const Chunk& chunk : chunks) {
      CHECK(chunk.pos == 0 && chunk.wants_vector);
      for (const Token token : chunk.tokens) add(token, chunk);
    }
    if (const int code = compute(); code != 0) {
      if (code == 2) return StepOutcome::Aborted;
      log::error("llama_decode failed with code {}", code);
      return StepOutcome::Failed;
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const float* row = llama_get_embeddings_seq(context_.get(), chunks[i].slot);
      CHECK(row != nullptr);
      vectors_[i].assign(row, row + info_.vector_length);
      length_of(chunks[i].slot) = static_cast<int>(chunks[i].tokens.size());
    }
    return StepOutcome::Done;
  }

  std::span<const float> logits(std::size_t) const override { return {}; }
  std::span<const float> logits(std::size_t, std::size_t) const override { return {}; }
  std::span<const float> vector(std::size_t index) const override { return vectors_.at(index); }

  int length(int slot) const override { return lengths_.at(static_cast<std::size_t>(slot)); }
  void truncate(int slot, int length) override {
    CHECK(length >= 0 && length <= this->length(slot));
    if (length < this->length(slot)) length_of(slot) = 0;
  }
  Result<void> move(int from, int to) override {
    length_of(to) = std::exchange(length_of(from), 0);
    return {};
  }
  Result<std::vector<std::byte>> save(int) const override {
    return fail(Code::Internal, "a model for vectors keeps no cells");
  }
  Result<void> restore(int, std::span<const std::byte>) override {
    return fail(Code::Internal, "a model for vectors keeps no cells");
  }
  std::string trim_memory() override { return {}; }
  void request_abort() noexcept override { abort_.store(true); }

 private:
  int& length_of(int slot) { return lengths_.at(static_cast<std::size_t>(slot)); }

  void add(Token token, const Chunk& chunk) {
    const int at = batch_.n_tokens++;
    const bool first = at == 0 || batch_.seq_id[at - 1][0] != chunk.slot;
    batch_.token[at] = token;
    batch_.pos[at] = first ? 0 : batch_.pos[at - 1] + 1;
    batch_.n_seq_id[at] = 1;
    batch_.seq_id[at][0] = chunk.slot;
    batch_.logits[at] = 1;  // all are pooled
  }

  int compute() {
    // Models whose tokens see only those before them have cells, which nothing here goes on from.
    if (llama_memory_t memory = llama_get_memory(context_.get())) llama_memory_clear(memory, false);
    try {
      const int code = llama_decode(context_.get(), batch_);
      if (code == 0) llama_synchronize(context_.get());
      if (code == 2) abort_.store(false);
      return code;
    } catch (const std::exception& e) {
      log::error("llama_decode: {}", e.what());
      return -2;
    }
  }

  const ModelHandle model_;
  const ThreadPoolHandle threads_;
  const ContextHandle context_;
  const EngineInfo info_;
  std::vector<int> lengths_;
  llama_batch batch_;
  std::vector<std::vector<float>> vectors_;  // by chunk of the last pass
  std::atomic<bool> abort_{false};
};

ContextHandle open_context(const EngineInfo& info, const LoadOptions& options, llama_model* model) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(info.step_tokens_max);
  params.n_batch = params.n_ubatch = params.n_ctx;
  params.n_seq_max = static_cast<std::uint32_t>(info.width);
  params.n_threads = params.n_threads_batch = options.threads;
  params.kv_unified = true;
  params.embeddings = true;
  params.no_perf = true;
  try {
    return ContextHandle(llama_init_from_model(model, params));
  } catch (const std::exception& e) {
    log::debug("llama_init_from_model: {}", e.what());
    return nullptr;
  }
}

EngineInfo describe(const llama_model* model, const LoadOptions& options) {
  std::array<char, 256> text{};
  EngineInfo info;
  llama_model_desc(model, text.data(), text.size());
  info.description = text.data();
  info.quantization = llama_ftype_name(llama_model_ftype(model));
  info.vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  info.context_trained = llama_model_n_ctx_train(model);
  const int most = std::min(info.context_trained, kContextMax);
  info.context = options.context == 0 ? most : std::min(options.context, most);
  info.width = options.width;
  info.step_tokens_max = std::max({info.context, options.step_tokens_max, options.width});
  info.model_bytes = static_cast<std::int64_t>(llama_model_size(model));
  info.numerics = fmt::format("vectors {}", text.data());
  info.can_cut = false;
  info.vector_length = llama_model_n_embd_out(model);
  info.generates_text = false;
  info.whole_prompts = true;
  info.draft_reason = "the model generates no text";
  return info;
}

}  // namespace

Result<LoadedModel> load_vector_engine(const GgufFacts& facts, const LoadOptions& given,
                                       const LoadProgress& progress) {
  LoadOptions options = given;
  options.kernels = Kernels::Stock;
  auto model = load_weights(facts, options, progress);
  if (!model) return fail(model.error());
  const EngineInfo info = describe(model->get(), options);
  ThreadPoolHandle threads = make_threads(options.threads, 0);
  const LlamaErrors errors;
  ContextHandle context = threads ? open_context(info, options, model->get()) : nullptr;
  if (!context) {
    return fail(Code::ResourceExhausted,
                fmt::format("no memory for passes of {} tokens: {}; use a smaller context",
                            info.step_tokens_max, errors.text()));
  }
  llama_attach_threadpool(context.get(), threads.get(), nullptr);
  LoadedModel loaded;
  loaded.tokenizer = make_llama_tokenizer(*model);
  loaded.engine =
      std::make_unique<VectorEngine>(*model, std::move(threads), std::move(context), info);
  return loaded;
}

}  // namespace flotilla::engine
