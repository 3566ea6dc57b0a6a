#include "engine/llama_load.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/ggml_hook.h"
#include "engine/llama_log.h"

namespace flotilla::engine {
namespace {

// Progress that never goes back, and ends at the total.
class Meter {
 public:
  Meter(std::int64_t total, const LoadProgress& progress) : total_(total), progress_(progress) {}

  // false: stop loading.
  bool advance(double fraction) {
    const auto bytes = static_cast<std::int64_t>(fraction * static_cast<double>(total_));
    loaded_ = std::clamp(bytes, loaded_, total_);
    stopped_ = stopped_ || (progress_ && !progress_(loaded_, total_));
    return !stopped_;
  }
  bool stopped() const { return stopped_; }

 private:
  const std::int64_t total_;
  const LoadProgress& progress_;
  std::int64_t loaded_ = 0;
  bool stopped_ = false;
};

constexpr double kReadingShare = 0.9;

// libllama maps the file and lets the kernel read all of it within one call: minutes without a sign
// of life for a large model on a slow disk. So it is read into the page cache first, in view.
void read_files(const GgufFacts& facts, Meter& meter) {
  std::vector<char> block(std::size_t{8} << 20);
  double bytes = 0;
  for (const auto& file : facts.files) {
    std::ifstream in(file, std::ios::binary);
    while (in && !meter.stopped()) {
      in.read(block.data(), static_cast<std::streamsize>(block.size()));
      bytes += static_cast<double>(in.gcount());
      const double read = bytes / static_cast<double>(std::max<std::int64_t>(1, facts.file_bytes));
      meter.advance(kReadingShare * std::min(1.0, read));
    }
  }
}

bool on_tensor(float fraction, void* meter) {
  return static_cast<Meter*>(meter)->advance(kReadingShare + (1 - kReadingShare) * fraction);
}

Error load_error(const GgufFacts& facts, const std::string& reason) {
  const bool memory = reason.find("allocate") != reason.npos || reason.find("mmap") != reason.npos;
  return {.code = memory ? Code::ResourceExhausted : Code::InvalidArgument,
          .message = fmt::format("cannot load {}: {}", facts.files.front().string(),
                                 reason.empty() ? "llama.cpp gave no reason" : reason)};
}

std::optional<std::string> why_of_no_use(const GgufFacts& facts, const llama_model* model) {
  if (facts.use == GgufFacts::Use::Other) {
    return "it gives neither text nor vectors of texts (a reranker, or an embedding model that "
           "says "
           "no pooling)";
  }
  if (llama_model_is_diffusion(model)) {
    return "it does not generate text token by token (a diffusion model)";
  }
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model)) {
    return "models with an encoder are not supported: use a decoder-only model";
  }
  const llama_vocab* vocab = llama_model_get_vocab(model);
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE || llama_vocab_n_tokens(vocab) <= 0) {
    return "it has no tokenizer";
  }
  return {};
}

}  // namespace

bool uses_our_kernels(const LoadOptions& options) {
  // Also for a load that does not use them: libllama keeps the list that its first load sees.
  const std::string reason = register_kernels();
  if (options.kernels != Kernels::Flotilla) return false;
  if (options.gpu_layers != 0 && llama_supports_gpu_offload()) return false;
  if (!reason.empty()) log::info("ggml's own kernels are used: {}", reason);
  return reason.empty();
}

Result<ModelHandle> load_weights(const GgufFacts& facts, const LoadOptions& options,
                                 const LoadProgress& progress) {
  const int gpu_layers = options.gpu_layers;
  if (gpu_layers != 0 && !llama_supports_gpu_offload()) {
    log::warning("gpu_layers={} has no effect: this build or machine has no GPU", gpu_layers);
  }
  const auto cancelled = fail(Code::Cancelled, "the load was stopped");
  Meter meter(facts.tensor_bytes, progress);
  if (!meter.advance(0)) return cancelled;
  read_files(facts, meter);
  if (meter.stopped()) return cancelled;

  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = gpu_layers;
  params.progress_callback = on_tensor;
  params.progress_callback_user_data = &meter;
  const LlamaErrors errors;
  ModelHandle model;
  const bool ours = uses_our_kernels(options);
  // A mapped file would stay in memory beside the packed copy of nearly all of it.
  if (ours) params.load_mode = LLAMA_LOAD_MODE_NONE;
  const WithKernels with_kernels(ours, options.threads);
  try {
    model.reset(llama_model_load_from_file(facts.files.front().c_str(), params), llama_model_free);
  } catch (const std::exception& e) {
    return fail(load_error(facts, e.what()));
  }
  if (meter.stopped()) return cancelled;
  if (!model) return fail(load_error(facts, errors.text()));
  if (const auto reason = why_of_no_use(facts, model.get())) {
    return fail(load_error(facts, *reason));
  }
  if (!meter.advance(1)) return cancelled;
  return model;
}

}  // namespace flotilla::engine
