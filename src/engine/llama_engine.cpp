#include "engine/llama_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/chat_template.h"
#include "engine/checksum.h"
#include "engine/chunk_contract.h"
#include "engine/ggml_hook.h"
#include "engine/llama_context.h"
#include "engine/llama_grammar.h"
#include "engine/llama_load.h"
#include "engine/llama_log.h"
#include "engine/saved_cells.h"
#include "engine/thread_choice.h"
#include "engine/tokenizer.h"
#include "engine/vector_engine.h"

namespace flotilla::engine {
namespace {

std::string meta_text(const llama_model* model, auto read) {
  std::array<char, 256> text{};
  read(model, text.data(), text.size());
  return text.data();
}

// Drafted tokens that were wrong must leave no trace in the cells, nor drafts in the bits.
std::string reason_against_drafts(const llama_model* model, const ReadyContext& ready,
                                  const GgufFacts& facts) {
  if (facts.use != GgufFacts::Use::Text) return "the model generates no text";
  if (!ready.partial_truncation) return "the model's state cannot go back to an earlier token";
  if (llama_model_n_swa(model) > 0) return "the model's cells leave a sliding window for good";
  if (!ready.kernel_use.all_ours()) return "these kernels' bits depend on what shares a pass";
  return {};
}

EngineInfo describe(const llama_model* model, const ReadyContext& ready, const GgufFacts& facts) {
  EngineInfo info;
  info.description = meta_text(model, llama_model_desc);
  info.quantization = llama_ftype_name(llama_model_ftype(model));
  info.vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  info.context_trained = llama_model_n_ctx_train(model);
  info.context = ready.shape.context;
  info.width = ready.shape.width;
  info.width_reason = ready.shape.width_reason;
  info.step_tokens_max = ready.shape.step_tokens_max;
  info.model_bytes = static_cast<std::int64_t>(llama_model_size(model));
  info.kv_bytes = ready.kv_bytes;
  info.numerics = numerics_name(ready);
  // Stock attention takes one of three paths by the number of tokens in a pass, and their bits
  // differ: what shares a pass with a sequence can change its logits.
  info.exact_resume = ready.kernel_use.all_ours() && ready.partial_truncation;
  info.can_cut = ready.partial_truncation;
  info.vector_length = static_cast<int>(ready.rows->length());
  info.generates_text = facts.use == GgufFacts::Use::Text;
  info.draft_reason = reason_against_drafts(model, ready, facts);
  if (info.draft_reason.empty()) info.draft_tokens_max = ready.shape.draft_tokens_max;
  return info;
}

std::uint64_t fingerprint_of(const std::string& layout, std::uint64_t model) {
  return checksum(std::as_bytes(std::span(layout)), model);
}

// What a pass takes: by the wall, and of the processors for all of this process' threads.
class PassTime {
 public:
  double wall_ms() const { return to_ms(clock_.now() - began_); }
  double cpu_ms() const {
    return 1000.0 * static_cast<double>(std::clock() - cpu_began_) / CLOCKS_PER_SEC;
  }

 private:
  SystemClock clock_;
  const Instant began_ = clock_.now();
  const std::clock_t cpu_began_ = std::clock();
};

// A slot is a sequence id of libllama. libllama aborts on slots
// out of range and on batches too large, so all of that is checked before.
class LlamaEngine final : public Engine {
 public:
  LlamaEngine(ModelHandle model, ReadyContext ready, const GgufFacts& facts)
      : model_(std::move(model)),
        ready_(std::move(ready)),
        context_(ready_.context.get()),
        memory_(llama_get_memory(context_)),
        info_(describe(model_.get(), ready_, facts)),
        fingerprint_(fingerprint_of(cell_layout_name(ready_), facts.fingerprint)),
        threads_(ready_.shape.threads, ready_.shape.least_threads),
        lengths_(static_cast<std::size_t>(info_.width)),
        batch_(llama_batch_init(info_.step_tokens_max, 0, 1)) {
    llama_set_abort_callback(
        context_,
        [](void* flag) {
          return static_cast<std::atomic<bool>*>(flag)->load(std::memory_order::relaxed);
        },
        &abort_);
  }
  ~LlamaEngine() override { llama_batch_free(batch_); }
  LlamaEngine(const LlamaEngine&) = delete;
  LlamaEngine& operator=(const LlamaEngine&) = delete;

  const EngineInfo& info() const override { return info_; }

  StepOutcome decode(std::span<const Chunk> chunks) override {
    check_chunks(*this, chunks);
    logits_.assign(chunks.size(), {});
    vectors_.assign(chunks.size(), {});
    bool first = true;
    for (const std::vector<std::size_t>& part : parts_of(chunks)) {
      const int code = compute(chunks, part);
      if (code != 0) return end_badly(chunks, code, first);
      first = false;
    }
    for (const Chunk& chunk : chunks)
      length_of(chunk.slot) += static_cast<int>(chunk.tokens.size());
    return StepOutcome::Done;
  }

  std::span<const float> logits(std::size_t index) const override {
    CHECK(index < logits_.size() && !logits_[index].empty());
    return {logits_[index].back(), static_cast<std::size_t>(info_.vocabulary)};
  }

  std::span<const float> logits(std::size_t index, std::size_t drafted) const override {
    CHECK(index < logits_.size() && drafted < logits_[index].size());
    return {logits_[index][drafted], static_cast<std::size_t>(info_.vocabulary)};
  }

  std::span<const float> vector(std::size_t index) const override {
    CHECK(index < vectors_.size() && !vectors_[index].empty());
    return vectors_[index];
  }

  int length(int slot) const override {
    CHECK(slot >= 0 && slot < info_.width);
    return lengths_[static_cast<std::size_t>(slot)];
  }

  void truncate(int slot, int length) override {
    int& held = length_of(slot);
    CHECK(length >= 0 && length <= held);
    if (length == held) return;
    const bool can_keep = length > 0 && ready_.partial_truncation;
    if (can_keep && llama_memory_seq_rm(memory_, slot, length, -1)) {
      held = length;
    } else {
      empty(slot);
    }
  }

  Result<void> move(int from, int to) override {
    CHECK(from != to && length(to) == 0);
    if (length(from) == 0) return {};
    if (ready_.unified) {  // the same cells under another name
      llama_memory_seq_cp(memory_, from, to, -1, -1);
      length_of(to) = length(from);
      empty(from);
      return {};
    }
    const auto payload = read_cells(from, 0);
    if (!payload) return fail(payload.error());
    const auto written = write_cells(to, length(from), *payload);
    if (!written) return written;
    truncate(from, 0);
    return {};
  }

  Result<std::vector<std::byte>> save(int slot) const override {
    auto state = read_cells(slot, saved_header_bytes());
    if (state) seal_saved_cells(fingerprint_, length(slot), *state);
    return state;
  }

  Result<void> restore(int slot, std::span<const std::byte> state) override {
    CHECK(length(slot) == 0);
    const auto saved = open_saved_cells(fingerprint_, state);
    if (!saved) return fail(saved.error());
    if (saved->length > info_.context) {
      return fail(Code::InvalidArgument, "the saved cells are more than a slot holds");
    }
    if (saved->length == 0) return {};
    return write_cells(slot, saved->length, saved->payload);
  }

  std::string trim_memory() override {
#ifdef __GLIBC__
    if (malloc_trim(0) != 0) return "heap";
#endif
    return {};
  }

  void request_abort() noexcept override { abort_.store(true); }

 private:
  int& length_of(int slot) {
    CHECK(slot >= 0 && slot < info_.width);
    return lengths_[static_cast<std::size_t>(slot)];
  }

  // Whatever libllama holds for the slot, also what a failed pass left.
  void empty(int slot) {
    CHECK(llama_memory_seq_rm(memory_, slot, -1, -1));
    length_of(slot) = 0;
  }

  // What libllama computes in one call. The rows of a call come in the order of its tokens where
  // all slots share one pool of cells; else it may sort them, so whoever wants a vector is alone.
  // Logits live until the next call: theirs is the last.
  std::vector<std::vector<std::size_t>> parts_of(std::span<const Chunk> chunks) const {
    std::vector<std::vector<std::size_t>> parts;
    std::vector<std::size_t> together;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].wants_vector && !ready_.unified) {
        parts.push_back({i});
      } else {
        together.push_back(i);
      }
    }
    if (!together.empty()) parts.push_back(std::move(together));
    return parts;
  }

  // llama_decode's code.
  int compute(std::span<const Chunk> chunks, std::span<const std::size_t> part) {
    const bool vectors =
        std::ranges::any_of(part, [&](std::size_t i) { return chunks[i].wants_vector; });
    ready_.rows->begin(vectors);
    fill_batch(chunks, part);
    if (const int code = run_batch(); code != 0) return code;
    int last = -1;
    std::size_t row = 0;
    for (const std::size_t i : part) {
      const Chunk& chunk = chunks[i];
      last += static_cast<int>(chunk.tokens.size());
      if (!chunk.wants_logits) continue;
      for (int at = last - chunk.drafted; at <= last; ++at) {
        logits_[i].push_back(llama_get_logits_ith(context_, at));
        CHECK(logits_[i].back() != nullptr);
      }
      row += static_cast<std::size_t>(chunk.drafted);
      if (chunk.wants_vector) {
        const auto numbers = ready_.rows->row(row);
        vectors_[i].assign(numbers.begin(), numbers.end());
      }
      ++row;
    }
    CHECK(!vectors || row == ready_.rows->count());
    return 0;
  }

  StepOutcome end_badly(std::span<const Chunk> chunks, int code, bool first) {
    if (code == 1 && first) return StepOutcome::NoSpace;
    if (code == 2) {
      abort_.store(false);
      for (const Chunk& chunk : chunks) read_length(chunk.slot);
      return StepOutcome::Aborted;
    }
    CHECK(code != -1);  // a batch that libllama calls invalid: check_chunks() missed something
    log::error("llama_decode failed with code {}", code);
    for (const Chunk& chunk : chunks) empty(chunk.slot);
    return StepOutcome::Failed;
  }

  void fill_batch(std::span<const Chunk> chunks, std::span<const std::size_t> part) {
    batch_.n_tokens = 0;
    for (const std::size_t index : part) {
      const Chunk& chunk = chunks[index];
      for (std::size_t i = 0; i < chunk.tokens.size(); ++i) {
        const int at = batch_.n_tokens++;
        batch_.token[at] = chunk.tokens[i];
        batch_.pos[at] = chunk.pos + static_cast<int>(i);
        batch_.n_seq_id[at] = 1;
        batch_.seq_id[at][0] = chunk.slot;
        const std::size_t wanted = chunk.wants_logits ? 1 + std::size_t(chunk.drafted) : 0;
        batch_.logits[at] = i + wanted >= chunk.tokens.size() ? 1 : 0;
      }
    }
  }

  int run_batch() {
    try {
      const WithKernels with_kernels(ready_.shape.our_kernels);
      choose_threads();
      const PassTime time;
      const int code = llama_decode(context_, batch_);
      if (code == 0) llama_synchronize(context_);
      if (code == 0) retired_.clear();
      threads_.observe(time.wall_ms(), time.cpu_ms());
      return code;
    } catch (const std::exception& e) {
      log::error("llama_decode: {}", e.what());
      return -2;
    }
  }

  // A pool of their own, since those of a larger one that have nothing to do wait busily. Where
  // others compute there is no busy waiting between passes either. The backend takes the new pool
  // with the next graph, and pauses the one before: until then that one lives on.
  void choose_threads() {
    const int threads = threads_.threads();
    if (threads == llama_n_threads(context_)) return;
    const bool all = threads == ready_.shape.threads;
    ThreadPoolHandle pool = make_threads(threads, all ? ready_.shape.spin : 0);
    if (!pool) return;
    llama_attach_threadpool(context_, pool.get(), nullptr);
    llama_set_n_threads(context_, threads, threads);
    retired_.push_back(std::exchange(ready_.threads, std::move(pool)));
  }

  // After an aborted pass: the parts of it that were done stay.
  void read_length(int slot) {
    length_of(slot) = llama_memory_seq_pos_max(memory_, slot) + 1;
    // A recurrent state has moved on beyond its last position, and cannot go back to it.
    if (!ready_.partial_truncation) empty(slot);
  }

  // A slot's cells in libllama's form, after `header` free bytes.
  Result<std::vector<std::byte>> read_cells(int slot, std::size_t header) const {
    CHECK(slot >= 0 && slot < info_.width);
    const std::size_t size = llama_state_seq_get_size(context_, slot);
    std::vector<std::byte> state(header + size);
    auto* payload = reinterpret_cast<std::uint8_t*>(state.data() + header);
    if (size == 0 || llama_state_seq_get_data(context_, payload, size, slot) != size) {
      return fail(Code::Internal, fmt::format("the cells of slot {} cannot be read", slot));
    }
    return state;
  }

  Result<void> write_cells(int slot, int length, std::span<const std::byte> payload) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(payload.data());
    const std::size_t read = llama_state_seq_set_data(context_, data, payload.size(), slot);
    const bool whole =
        read == payload.size() && llama_memory_seq_pos_max(memory_, slot) == length - 1;
    if (whole) {
      length_of(slot) = length;
      return {};
    }
    empty(slot);  // a refused state may leave some of its cells
    return fail(Code::InvalidArgument, fmt::format("the cells for slot {} are not whole", slot));
  }

  const ModelHandle model_;
  std::vector<ThreadPoolHandle> retired_;  // that the backend may still hold
  ReadyContext ready_;
  llama_context* const context_;
  const llama_memory_t memory_;
  const EngineInfo info_;
  const std::uint64_t fingerprint_;
  ThreadChoice threads_;
  std::vector<int> lengths_;
  llama_batch batch_;
  // By chunk of the last pass, by token of those that asked for them; libllama's memory.
  std::vector<std::vector<const float*>> logits_;
  std::vector<std::vector<float>> vectors_;
  std::atomic<bool> abort_{false};
};

}  // namespace

Result<LoadedModel> load_llama(const LoadOptions& options, const LoadProgress& progress) {
  route_llama_log();
  const auto facts = read_gguf_facts(options.model);
  if (!facts) return fail(facts.error());
  const auto with_file = [&](Error error) {
    error.message = fmt::format("{}: {}", options.model.string(), error.message);
    return fail(std::move(error));
  };
  auto checked = check_options(options, facts->context_trained);
  if (!checked) return with_file(checked.error());
  if (facts->use == GgufFacts::Use::WholeVectors) {
    return load_vector_engine(*facts, options, progress);
  }
  auto model = load_weights(*facts, options, progress);
  if (!model) return fail(model.error());
  checked = check_options(options, llama_model_n_ctx_train(model->get()));
  if (!checked) return with_file(checked.error());
  LoadedModel loaded;
  if (facts->use == GgufFacts::Use::Text) {
    auto chat_template = make_llama_chat_template(*model, options.chat_template);
    if (!chat_template) return with_file(chat_template.error());
    loaded.chat_template = std::move(*chat_template);
  }
  auto ready = make_context(plan_context(options, model->get()), model->get());
  if (!ready) return with_file(ready.error());
  loaded.tokenizer = make_llama_tokenizer(*model);
  loaded.grammars = make_llama_grammars(*model);
  loaded.engine = std::make_unique<LlamaEngine>(*model, std::move(*ready), *facts);
  return loaded;
}

}  // namespace flotilla::engine
