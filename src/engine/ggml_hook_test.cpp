#include "engine/ggml_hook.h"

#include <cmath>
#include <memory>
#include <traits.h>
#include <vector>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/llama_handles.h"

namespace flotilla::engine {
namespace {

using ContextPtr = std::unique_ptr<ggml_context, FreeWith<ggml_free>>;
using BufferPtr = std::unique_ptr<ggml_backend_buffer, FreeWith<ggml_backend_buffer_free>>;
using BackendPtr = std::unique_ptr<ggml_backend, FreeWith<ggml_backend_free>>;

ContextPtr make_tensors() {
  return ContextPtr(ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true}));
}

std::vector<float> random_values(std::int64_t count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() * 2 - 1);
  return values;
}

void set(ggml_tensor* tensor, const std::vector<float>& values) {
  ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(float));
}

class GgmlHookTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = register_kernels();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  std::vector<float> compute(ggml_context* tensors, ggml_tensor* result) {
    ggml_cgraph* graph = ggml_new_graph(tensors);
    ggml_build_forward_expand(graph, result);
    EXPECT_EQ(ggml_backend_graph_compute(backend_.get(), graph), GGML_STATUS_SUCCESS);
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(result)));
    ggml_backend_tensor_get(result, values.data(), 0, values.size() * sizeof(float));
    return values;
  }

  static ggml_backend_buffer_type_t our_type() {
    return ggml_backend_cpu_get_extra_buffer_types().front();
  }

  BackendPtr backend_{ggml_backend_cpu_init()};
};

void expect_close(const std::vector<float>& a, const std::vector<float>& b, double share) {
  ASSERT_EQ(a.size(), b.size());
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    size += std::pow(double{b[i]}, 2);
  }
  EXPECT_LT(std::sqrt(difference / size), share);
}

TEST_F(GgmlHookTest, ProductsOfPackedWeightsEqualGgmlsOwnWithinTheQuantisation) {
  Random random(1);
  for (const ggml_type type :
       {GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K}) {
    for (const int columns : {1, 3, 150}) {
      const std::int64_t depth = 512;
      const std::int64_t rows = 70;
      std::vector<std::uint8_t> bytes(ggml_row_size(type, depth) * static_cast<std::size_t>(rows));
      const auto values = random_values(depth * rows, random);
      ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, depth, nullptr);
      const auto inputs = random_values(depth * columns, random);
      std::vector<float> results[2];
      for (const bool ours : {false, true}) {
        const ContextPtr weights = make_tensors();
        ggml_tensor* weight = ggml_new_tensor_2d(weights.get(), type, depth, rows);
        const BufferPtr buffer(ggml_backend_alloc_ctx_tensors_from_buft(
            weights.get(), ours ? our_type() : ggml_backend_cpu_buffer_type()));
        ggml_backend_tensor_set(weight, bytes.data(), 0, bytes.size());
        const ContextPtr tensors = make_tensors();
        ggml_tensor* input = ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F32, depth, columns);
        ggml_tensor* result = ggml_mul_mat(tensors.get(), weight, input);
        const BufferPtr memory(ggml_backend_alloc_ctx_tensors(tensors.get(), backend_.get()));
        set(input, inputs);
        KernelUse use;
        const WithKernels with_kernels(ours, 2, &use);
        results[ours ? 1 : 0] = compute(tensors.get(), result);
        EXPECT_EQ(use.our_products, ours ? 1 : 0);
        EXPECT_EQ(use.stock_products, ours ? 0 : 1) << use.stock_reason;
      }
      expect_close(results[1], results[0], 0.02);
    }
  }
}

// A norm, its weights, and two products of the result; then what else reads the norm or the result.
struct NormCase {
  bool norm_read = false;
  bool weighed_read = false;
  bool weighed_is_output = false;
};

class NormedProducts {
 public:
  NormedProducts(int columns, Random& random)
      : columns_(columns),
        inputs_(random_values(kDepth * columns, random)),
        gains_(random_values(kDepth, random)),
        bytes_(ggml_row_size(GGML_TYPE_Q4_0, kDepth) * kDepth) {
    const auto values = random_values(kDepth * kDepth, random);
    ggml_quantize_chunk(GGML_TYPE_Q4_0, values.data(), bytes_.data(), 0, kDepth, kDepth, nullptr);
  }

  // What comes out, and the weighed norm where it is an output.
  std::vector<float> compute(const NormCase& what, ggml_backend* backend, bool ours,
                             ggml_backend_buffer_type_t type, std::vector<float>* weighed_values) {
    const ContextPtr weights = make_tensors();
    ggml_tensor* a = ggml_new_tensor_2d(weights.get(), GGML_TYPE_Q4_0, kDepth, kDepth);
    const BufferPtr buffer(ggml_backend_alloc_ctx_tensors_from_buft(weights.get(), type));
    ggml_backend_tensor_set(a, bytes_.data(), 0, bytes_.size());
    const ContextPtr tensors = make_tensors();
    ggml_context* context = tensors.get();
    ggml_tensor* input = ggml_new_tensor_2d(context, GGML_TYPE_F32, kDepth, columns_);
    ggml_tensor* gain = ggml_new_tensor_1d(context, GGML_TYPE_F32, kDepth);
    ggml_tensor* norm = ggml_rms_norm(context, input, 1e-5F);
    ggml_tensor* weighed = ggml_mul(context, norm, gain);
    if (what.weighed_is_output) ggml_set_output(weighed);
    ggml_tensor* result = ggml_add(context, ggml_mul_mat(context, a, weighed),
                                   ggml_sqr(context, ggml_mul_mat(context, a, weighed)));
    if (what.weighed_read) result = ggml_add(context, result, weighed);
    if (what.norm_read) result = ggml_add(context, result, norm);
    const BufferPtr memory(ggml_backend_alloc_ctx_tensors(context, backend));
    set(input, inputs_);
    set(gain, gains_);
    // Whoever does not write the norm leaves this.
    ggml_backend_tensor_memset(weighed, 0x7f, 0, ggml_nbytes(weighed));
    ggml_backend_tensor_memset(norm, 0x7f, 0, ggml_nbytes(norm));
    const WithKernels with_kernels(ours, 1);
    ggml_cgraph* graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, result);
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(result)));
    for (int pass = 0; pass < 2; ++pass) {  // libllama computes a graph again and again
      EXPECT_EQ(ggml_backend_graph_compute(backend, graph), GGML_STATUS_SUCCESS);
      std::vector<float> seen(values.size());
      ggml_backend_tensor_get(result, seen.data(), 0, seen.size() * sizeof(float));
      if (pass == 1) {
        EXPECT_EQ(seen, values);
      }
      values = seen;
    }
    if (weighed_values != nullptr) {
      weighed_values->resize(static_cast<std::size_t>(ggml_nelements(weighed)));
      ggml_backend_tensor_get(weighed, weighed_values->data(), 0, ggml_nbytes(weighed));
    }
    return values;
  }

 private:
  static constexpr int kDepth = 96;
  const int columns_;
  std::vector<float> inputs_;
  std::vector<float> gains_;
  std::vector<std::uint8_t> bytes_;
};

TEST_F(GgmlHookTest, ANormThatProductsComputeIsStillThereForOthers) {
  Random random(3);
  for (const int columns : {1, 5, 800}) {  // 800: more than each thread computes for itself
    NormedProducts products(columns, random);
    for (const NormCase& what :
         {NormCase{}, NormCase{.norm_read = true}, NormCase{.weighed_read = true},
          NormCase{.norm_read = true, .weighed_read = true}, NormCase{.weighed_is_output = true}}) {
      SCOPED_TRACE(testing::Message()
                   << columns << " columns, norm read " << what.norm_read << ", weighed read "
                   << what.weighed_read << ", output " << what.weighed_is_output);
      std::vector<float> weighed[2];
      std::vector<float> results[2];
      for (const bool ours : {false, true}) {
        results[ours ? 1 : 0] = products.compute(
            what, backend_.get(), ours, ours ? our_type() : ggml_backend_cpu_buffer_type(),
            what.weighed_is_output ? &weighed[ours ? 1 : 0] : nullptr);
      }
      expect_close(results[1], results[0], 0.02);
      if (what.weighed_is_output) expect_close(weighed[1], weighed[0], 1e-5);
    }
  }
}

TEST_F(GgmlHookTest, AttentionThatOursDoesNotDoIsGgmls) {
  Random random(2);
  const int size = 64;
  const int cells = 32;
  for (const float max_bias : {0.0F, 8.0F}) {
    std::vector<float> results[2];
    const auto values = random_values(size * cells * 4, random);
    for (const bool ours : {false, true}) {
      const ContextPtr tensors = make_tensors();
      ggml_context* context = tensors.get();
      ggml_tensor* query = ggml_new_tensor_3d(context, GGML_TYPE_F32, size, 2, 4);
      ggml_tensor* key = ggml_new_tensor_3d(context, GGML_TYPE_F16, size, cells, 2);
      ggml_tensor* value = ggml_new_tensor_3d(context, GGML_TYPE_F16, size, cells, 2);
      ggml_tensor* mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, cells, 2);
      ggml_tensor* result =
          ggml_flash_attn_ext(context, query, key, value, mask, 0.125F, max_bias, 0);
      const BufferPtr memory(ggml_backend_alloc_ctx_tensors(context, backend_.get()));
      set(query, {values.begin(), values.begin() + size * 2 * 4});
      std::vector<ggml_fp16_t> halves(values.size());
      ggml_fp32_to_fp16_row(values.data(), halves.data(), std::ssize(values));
      for (ggml_tensor* tensor : {key, value}) {
        ggml_backend_tensor_set(tensor, halves.data(), 0, ggml_nbytes(tensor));
      }
      ggml_backend_tensor_memset(mask, 0, 0, ggml_nbytes(mask));
      KernelUse use;
      const WithKernels with_kernels(ours, 1, &use);
      results[ours ? 1 : 0] = compute(context, result);
      const bool served = ours && max_bias == 0;
      EXPECT_EQ(use.our_attention, served ? 1 : 0);
      EXPECT_EQ(use.stock_attention, served ? 0 : 1);
      EXPECT_EQ(use.stock_reason.find("ALiBi") != std::string::npos, ours && !served);
    }
    expect_close(results[1], results[0], 0.005);
  }
}

TEST_F(GgmlHookTest, WeightsWithoutAKernelAreNotTaken) {
  auto* device = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
  const WithKernels with_kernels(true);
  const auto takes = [device](ggml_type type, std::int64_t depth) {
    const ContextPtr tensors = make_tensors();
    ggml_tensor* weight = ggml_new_tensor_2d(tensors.get(), type, depth, 64);
    ggml_tensor* input = ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F32, depth, 1);
    const BufferPtr buffer(ggml_backend_buft_alloc_buffer(our_type(), 0));
    weight->buffer = buffer.get();
    return ggml_backend_dev_supports_op(device, ggml_mul_mat(tensors.get(), weight, input));
  };
  EXPECT_TRUE(takes(GGML_TYPE_Q4_0, 96));
  EXPECT_TRUE(takes(GGML_TYPE_Q4_K, 512));
  EXPECT_FALSE(takes(GGML_TYPE_Q5_0, 512));
  EXPECT_FALSE(takes(GGML_TYPE_F16, 512));
}

}  // namespace
}  // namespace flotilla::engine
