#include "engine/llama_context.h"

#include <algorithm>
#include <build-info.h>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/batch_probe.h"
#include "engine/llama_load.h"
#include "engine/llama_log.h"

namespace flotilla::engine {
namespace {

constexpr int kWidthMax = 64;

// Tokens that libllama computes at once. SmolLM2 Q4_1, 2 threads, ms for a prompt of 512 tokens
// with 63 / 128 / 256 / 512: 2,393 / 2,171 / 2,107 / 1,996; for 7 decoding slots beside a chunk of
// 32: 193 / 189 / 176 / 186. The rest is memory: buffers grow with it (engines of 512: 98 MiB, of
// 64: 12).
constexpr int kStockPassTokensMax = 256;
// With ours a whole prompt of 512 is one pass: its weights are read once.
constexpr int kPassTokensMax = 512;

constexpr int kSpinDefault = 50;

// libllama rounds a slot's cells up to this.
std::int64_t padded(int cells) { return (std::int64_t{cells} + 255) / 256 * 256; }

std::unexpected<Error> invalid(std::string message) {
  return fail(Code::InvalidArgument, std::move(message));
}

ggml_type to_ggml(KvType type) { return type == KvType::Q8_0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16; }

// How libllama lays out a context.
struct Layout {
  bool flash_attention = true;
  bool unified = false;  // one pool of cells for all slots
};

llama_context_params context_params(const ContextShape& shape, Layout layout, LastRows* rows) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(shape.width * padded(shape.context));
  params.n_batch = static_cast<std::uint32_t>(std::max(shape.step_tokens_max, kProbeTokensMax));
  params.n_ubatch = static_cast<std::uint32_t>(
      std::min(shape.step_tokens_max, layout.unified ? kPassTokensMax : kStockPassTokensMax));
  params.n_seq_max = static_cast<std::uint32_t>(shape.width);
  // One output a slot and pass, and one for each drafted token. The buffer of logits is by far the
  // largest of the compute buffers; libllama aborts on more outputs.
  params.n_outputs_max = params.n_seq_max + static_cast<std::uint32_t>(shape.draft_tokens_max);
  params.n_threads = shape.threads;
  params.n_threads_batch = shape.threads;
  params.type_k = to_ggml(shape.kv_type);
  params.type_v = to_ggml(shape.kv_type);
  // Never AUTO: it decides the layout of saved cells.
  params.flash_attn_type =
      layout.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  // Unified, chunks of any lengths share a pass. Stock attention wants separate streams: it would
  // compute all slots' cells for each slot in a pass of 64 tokens or more.
  params.kv_unified = layout.unified;
  params.cb_eval = LastRows::on_node;
  params.cb_eval_user_data = rows;
  params.no_perf = true;
  return params;
}

ContextHandle open_context(const ContextShape& shape, llama_model* model, Layout layout,
                           LastRows* rows) {
  try {
    return ContextHandle(llama_init_from_model(model, context_params(shape, layout, rows)));
  } catch (const std::exception& e) {
    log::debug("llama_init_from_model: {}", e.what());
    return nullptr;
  }
}

}  // namespace

Result<void> check_options(const LoadOptions& options, int context_trained) {
  if (options.width < 1 || options.width > kWidthMax) {
    return invalid(fmt::format("width must be 1-{}, not {}", kWidthMax, options.width));
  }
  if (options.threads < 1 || options.threads > GGML_MAX_N_THREADS) {
    return invalid(
        fmt::format("threads must be 1-{}, not {}", GGML_MAX_N_THREADS, options.threads));
  }
  if (options.context < 0 || options.window < 0 || options.step_tokens_max < 1 ||
      options.draft_tokens_max < 0) {
    return invalid(fmt::format(
        "context {}, window {}, step_tokens_max {} and draft_tokens_max {} must be "
        "positive",
        options.context, options.window, options.step_tokens_max, options.draft_tokens_max));
  }
  if (options.spin < -1 || options.spin > 100) {
    return invalid(fmt::format("spin must be 0-100, or -1 for the default, not {}", options.spin));
  }
  if (context_trained == 0) return {};
  if (options.context > context_trained) {
    return invalid(
        fmt::format("context {} is larger than the {} tokens that the model was "
                    "trained for",
                    options.context, context_trained));
  }
  const int context = options.context == 0 ? context_trained : options.context;
  if (options.window != 0 && options.window < context) {
    return invalid(
        fmt::format("window {} is smaller than one context of {}: give a larger window "
                    "or a smaller context",
                    options.window, context));
  }
  return {};
}

ContextShape plan_context(const LoadOptions& options, const llama_model* model) {
  ContextShape shape;
  shape.context = options.context == 0 ? llama_model_n_ctx_train(model) : options.context;
  shape.width = options.width;
  if (options.window != 0 && options.window / shape.context < shape.width) {
    shape.width = options.window / shape.context;
    shape.width_reason = fmt::format("a window of {} cells holds {} contexts of {}, not {}",
                                     options.window, shape.width, shape.context, options.width);
  }
  // libllama aborts when a batch cannot hold one token of each slot, and cuts it to the cells.
  const std::int64_t cells = std::int64_t{shape.width} * padded(shape.context);
  shape.step_tokens_max = static_cast<int>(
      std::min<std::int64_t>(std::max(options.step_tokens_max, shape.width), cells));
  shape.threads = options.threads;
  // A pass that waits for an accelerator gets little processor time on a quiet machine too.
  shape.least_threads = options.gpu_layers == 0 ? 1 : options.threads;
  const bool crowded = static_cast<unsigned>(options.threads) > std::thread::hardware_concurrency();
  shape.spin = options.spin >= 0 ? options.spin : crowded ? 0 : kSpinDefault;
  shape.kv_type = options.kv_type;
  shape.our_kernels = uses_our_kernels(options);
  // Elsewhere the bits depend on how a sequence is cut, and so would the words on the drafts.
  shape.draft_tokens_max = shape.our_kernels ? options.draft_tokens_max : 0;
  return shape;
}

ThreadPoolHandle make_threads(int threads, int spin) {
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  params.poll = static_cast<std::uint32_t>(spin);
  return ThreadPoolHandle(ggml_threadpool_new(&params));
}

Result<ReadyContext> make_context(ContextShape shape, llama_model* model) {
  // libllama counts cells in 32 bits; a model file may claim any context.
  if (shape.width * padded(shape.context) > std::numeric_limits<std::int32_t>::max()) {
    return invalid(
        fmt::format("{} slots of {} tokens are more cells than there can be: give a "
                    "smaller context or width",
                    shape.width, shape.context));
  }
  ReadyContext ready;
  ready.rows = std::make_unique<LastRows>();
  LastRows* const rows = ready.rows.get();
  ready.threads = make_threads(shape.threads, shape.spin);
  if (!ready.threads)
    return fail(Code::ResourceExhausted, "the engine's threads cannot be started");
  const LlamaErrors errors;
  const WithKernels with_kernels(shape.our_kernels, 1, &ready.kernel_use);
  ready.unified = shape.our_kernels;
  for (;;) {
    ready.kernel_use = {};
    ready.context = open_context(shape, model, {.unified = ready.unified}, rows);
    ready.flash_attention = ready.context != nullptr;
    if (!ready.context && shape.kv_type == KvType::F16) {
      ready.unified = false;
      ready.context = open_context(shape, model, {.flash_attention = false}, rows);
    }
    if (!ready.context) {
      return fail(Code::ResourceExhausted,
                  fmt::format("no memory for {} slots of {} tokens: {}; use a smaller width, "
                              "context or KV type",
                              shape.width, shape.context, errors.text()));
    }
    if (llama_get_memory(ready.context.get()) == nullptr) {
      return invalid("the model keeps no cells: it generates no text");
    }
    llama_attach_threadpool(ready.context.get(), ready.threads.get(), nullptr);
    const Result<std::string> reason = probe_batch(ready.context.get(), shape.width);
    if (!reason) return fail(reason.error());
    if (ready.unified && !ready.kernel_use.all_ours()) {
      log::info("llama.cpp's kernels beside ours: {}", ready.kernel_use.stock_reason);
      ready.unified = false;
      ready.context.reset();
      continue;
    }
    if (reason->empty()) break;
    shape.width = 1;
    shape.width_reason = *reason;
    ready.context.reset();
  }
  llama_context* context = ready.context.get();
  ready.pass_tokens = static_cast<int>(llama_n_ubatch(context));
  rows->begin(true);
  ready.kv_bytes = measure_kv_bytes(context, shape.width);
  rows->begin(false);
  const llama_memory_t memory = llama_get_memory(context);
  // Two tokens are in slot 0. A recurrent state cannot go back by one.
  ready.partial_truncation = llama_memory_seq_rm(memory, 0, 1, -1);
  llama_memory_clear(memory, false);
  ready.shape = std::move(shape);
  return ready;
}

std::string cell_layout_name(const ReadyContext& ready) {
  // The commit, since libllama's format has no version; the width of separate streams, since it is
  // in every state.
  return fmt::format("{}/kv {}/{}/{} streams", llama_commit(),
                     ready.shape.kv_type == KvType::Q8_0 ? "q8_0" : "f16",
                     ready.flash_attention ? "flash" : "plain",
                     ready.unified ? 1 : ready.shape.width);
}

std::string numerics_name(const ReadyContext& ready) {
  std::string cpu;
  const auto add = [&](int has, const char* name) {
    if (has != 0) cpu += fmt::format("{}{}", cpu.empty() ? "" : "+", name);
  };
  add(ggml_cpu_has_avx2(), "avx2");
  add(ggml_cpu_has_fma(), "fma");
  add(ggml_cpu_has_f16c(), "f16c");
  add(ggml_cpu_has_avx_vnni(), "avxvnni");
  add(ggml_cpu_has_avx512(), "avx512");
  add(ggml_cpu_has_avx512_vbmi(), "vbmi");
  add(ggml_cpu_has_avx512_vnni(), "vnni");
  add(ggml_cpu_has_avx512_bf16(), "bf16");
  add(ggml_cpu_has_amx_int8(), "amx");
  add(ggml_cpu_has_neon(), "neon");
  add(ggml_cpu_has_dotprod(), "dotprod");
  add(ggml_cpu_has_matmul_int8(), "i8mm");
  add(ggml_cpu_has_sve(), "sve");
  if (ready.kernel_use.all_ours()) {
    // The rest of a layer is ggml's: row by row, so it depends on the instructions alone.
    return fmt::format("flotilla 2 {}/{}/{}/kv f16", kernels_name(), llama_commit(),
                       cpu.empty() ? "generic" : cpu);
  }
  // Threads too: a lone token's attention is split among them.
  return fmt::format(
      "{} {}/{}/kv {}/{}/pass {}/{} threads",
      ready.shape.our_kernels ? "flotilla 2 " + kernels_name() + " and stock" : "stock",
      llama_commit(), cpu.empty() ? "generic" : cpu,
      ready.shape.kv_type == KvType::Q8_0 ? "q8_0" : "f16",
      ready.flash_attention ? "flash" : "plain", ready.pass_tokens, ready.shape.threads);
}

}  // namespace flotilla::engine
