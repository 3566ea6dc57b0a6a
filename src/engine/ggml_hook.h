#pragma once

#include <string>

namespace flotilla::engine {

// Our kernels inside ggml's CPU backend, registered from outside: a buffer type at the front of
// its list of extra ones. A weight that is loaded into it is packed for our kernels and computed by
// them; attention is taken whatever the buffer. All else goes to ggml's own code.

// Registers them, once a process and before its first load. Empty, or why ggml's own stay.
std::string register_kernels();

// "avx512vnni": the instruction set that ours use.
std::string kernels_name();

// What graphs were planned with: a node is ours or stock.
struct KernelUse {
  int our_products = 0;
  int stock_products = 0;
  int our_attention = 0;
  int stock_attention = 0;
  std::string stock_reason;  // of the first that is stock

  bool all_ours() const {
    return our_products > 0 && our_attention > 0 && stock_products + stock_attention == 0;
  }
};

// While one lives, this thread's loads and passes use our kernels, on models that were so loaded.
// Without one, a load places nothing with us and attention is stock.
class WithKernels {
 public:
  // `threads` pack weights; `use`, where given, counts the nodes of the passes.
  explicit WithKernels(bool on, int threads = 1, KernelUse* use = nullptr);
  ~WithKernels();
  WithKernels(const WithKernels&) = delete;
  WithKernels& operator=(const WithKernels&) = delete;
};

}  // namespace flotilla::engine
