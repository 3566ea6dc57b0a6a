#pragma once

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "engine/llama_handles.h"

// Beside the families, "bert": an encoder whose vectors are the mean of all tokens.
//
// Models of a few families with two to four tiny layers of random weights: they say nothing, but
// each has its family's kind of cache and computes like it. A file is a few hundred KiB.
namespace flotilla::engine {

inline constexpr std::array<std::string_view, 8> kTinyFamilies = {
    "llama", "qwen2", "qwen3", "gemma3", "qwen3moe", "mamba", "falcon-h1", "jamba"};

// For tests that break a model before it is written.
using TinyChange = std::function<void(gguf_context*)>;

class TinyModel {
 public:
  explicit TinyModel(std::string_view family) : family_(family) {
    const ggml_init_params params{
        .mem_size = std::size_t{16} << 20, .mem_buffer = nullptr, .no_alloc = false};
    tensors_ = ggml_init(params);
    gguf_.reset(gguf_init_empty());
    write_facts();
    write_vocabulary();
    write_tensors();
  }
  ~TinyModel() { ggml_free(tensors_); }
  TinyModel(const TinyModel&) = delete;
  TinyModel& operator=(const TinyModel&) = delete;

  void write(const std::filesystem::path& file, const TinyChange& change = {}) {
    if (change) change(gguf_.get());
    CHECK(gguf_write_to_file(gguf_.get(), file.c_str(), /*only_meta=*/false));
  }

 private:
  static constexpr int kEmbedding = 64;
  static constexpr int kHeads = 2;
  static constexpr int kHeadDim = 32;
  static constexpr int kKvHeads = 1;
  static constexpr int kFeedForward = 128;
  static constexpr int kExperts = 4;
  static constexpr int kStateInner = 2 * kEmbedding;
  static constexpr int kStateSize = 16;
  static constexpr int kStateHeads = 4;
  static constexpr int kConvolution = 4;
  static constexpr int kControlTokens = 3;
  static constexpr int kVocabulary = kControlTokens + 256;

  bool is(std::string_view family) const { return family_ == family; }
  int layers() const { return is("gemma3") || is("jamba") ? 4 : 2; }
  // Jamba's layers differ: every other one has attention, the others a recurrent state.
  bool attends(int layer) const { return !is("mamba") && (!is("jamba") || layer % 2 == 1); }
  bool recurs(int layer) const { return is("mamba") || is("falcon-h1") || !attends(layer); }

  void number(const std::string& key, int value) {
    gguf_set_val_u32(gguf_.get(), (family_ + "." + key).c_str(), static_cast<std::uint32_t>(value));
  }

  void write_facts() {
    gguf_set_val_str(gguf_.get(), "general.architecture", family_.c_str());
    gguf_set_val_str(gguf_.get(), "general.name", ("tiny " + family_).c_str());
    number("context_length", 1024);
    number("embedding_length", kEmbedding);
    number("block_count", layers());
    number("feed_forward_length", is("mamba") ? 0 : kFeedForward);
    number("attention.head_count", is("mamba") ? 0 : kHeads);
    if (is("jamba")) {
      std::vector<std::int32_t> heads;
      for (int layer = 0; layer < layers(); ++layer) heads.push_back(attends(layer) ? 1 : 0);
      gguf_set_arr_data(gguf_.get(), "jamba.attention.head_count_kv", GGUF_TYPE_INT32, heads.data(),
                        heads.size());
    } else if (!is("mamba")) {
      number("attention.head_count_kv", is("bert") ? kHeads : kKvHeads);
    }
    if (!is("mamba")) {
      number("attention.key_length", kHeadDim);
      number("attention.value_length", kHeadDim);
      number("rope.dimension_count", kHeadDim);
    }
    gguf_set_val_f32(gguf_.get(), (family_ + ".attention.layer_norm_rms_epsilon").c_str(), 1e-5F);
    if (is("bert")) {
      gguf_set_val_f32(gguf_.get(), "bert.attention.layer_norm_epsilon", 1e-5F);
      gguf_set_val_bool(gguf_.get(), "bert.attention.causal", false);
      number("pooling_type", LLAMA_POOLING_TYPE_MEAN);
      gguf_set_val_u32(gguf_.get(), "tokenizer.ggml.token_type_count", 2);
    }
    if (is("gemma3")) {
      number("attention.sliding_window", 32);
      number("attention.sliding_window_pattern", 2);
    }
    if (is("qwen3moe")) {
      number("expert_count", kExperts);
      number("expert_used_count", 2);
      number("expert_feed_forward_length", kFeedForward / 2);
    }
    if (recurs(0)) {
      number("ssm.conv_kernel", kConvolution);
      number("ssm.inner_size", kStateInner);
      number("ssm.state_size", kStateSize);
      number("ssm.time_step_rank", kStateHeads);
      number("ssm.group_count", 1);
    }
  }

  void write_vocabulary() {
    std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
    std::vector<std::int32_t> types = {2, 3, 3};
    for (int byte = 0; byte < 256; ++byte) {
      texts.push_back(fmt::format("<0x{:02X}>", byte));
      types.push_back(6);
    }
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    const std::vector<float> scores(texts.size(), 0.0F);
    gguf_context* gguf = gguf_.get();
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
    gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(),
                      scores.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                      types.size());
    gguf_set_val_u32(gguf, "tokenizer.ggml.unknown_token_id", 0);
    gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", 2);
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", false);
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_space_prefix", false);
    gguf_set_val_str(gguf, "tokenizer.chat_template",
                     "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  }

  // Weights: uniform, as large as keeps activations near one whatever the depth.
  void add(const std::string& name, std::vector<std::int64_t> shape, float scale, float offset) {
    ggml_tensor* tensor =
        ggml_new_tensor(tensors_, GGML_TYPE_F32, static_cast<int>(shape.size()), shape.data());
    ggml_set_name(tensor, name.c_str());
    auto* data = static_cast<float*>(tensor->data);
    for (std::int64_t i = 0; i < ggml_nelements(tensor); ++i) {
      data[i] = offset + scale * (2 * static_cast<float>(random_.uniform()) - 1);
    }
    gguf_add_tensor(gguf_.get(), tensor);
  }
  void weight(const std::string& name, std::vector<std::int64_t> shape) {
    const float scale = 2.0F / std::sqrt(static_cast<float>(shape[0]));
    add(name + ".weight", std::move(shape), scale, 0);
  }
  void norm(const std::string& name, std::vector<std::int64_t> shape) {
    add(name, std::move(shape), 0.1F, 1);
  }

  // A norm with a bias, and a weight with one.
  void encoder_norm(const std::string& name) {
    norm(name + ".weight", {kEmbedding});
    add(name + ".bias", {kEmbedding}, 0.1F, 0);
  }
  void encoder_weight(const std::string& name, std::int64_t in, std::int64_t out) {
    weight(name, {in, out});
    add(name + ".bias", {out}, 0.1F, 0);
  }
  void write_encoder() {
    weight("token_embd", {kEmbedding, kVocabulary});
    weight("token_types", {kEmbedding, 2});
    weight("position_embd", {kEmbedding, 1024});
    encoder_norm("token_embd_norm");
    for (int layer = 0; layer < layers(); ++layer) {
      const std::string blk = fmt::format("blk.{}.", layer);
      for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output"})
        encoder_weight(blk + part, kEmbedding, kEmbedding);
      encoder_norm(blk + "attn_output_norm");
      encoder_weight(blk + "ffn_up", kEmbedding, kFeedForward);
      encoder_weight(blk + "ffn_down", kFeedForward, kEmbedding);
      encoder_norm(blk + "layer_output_norm");
    }
  }

  void write_tensors() {
    if (is("bert")) return write_encoder();
    weight("token_embd", {kEmbedding, kVocabulary});
    norm("output_norm.weight", {kEmbedding});
    weight("output", {kEmbedding, kVocabulary});
    for (int layer = 0; layer < layers(); ++layer) {
      const std::string blk = fmt::format("blk.{}.", layer);
      norm(blk + "attn_norm.weight", {kEmbedding});
      if (recurs(layer)) write_recurrence(blk);
      if (attends(layer)) write_attention(blk);
      if (!is("mamba")) write_feed_forward(blk);
    }
  }

  void write_attention(const std::string& blk) {
    weight(blk + "attn_q", {kEmbedding, kHeads * kHeadDim});
    weight(blk + "attn_k", {kEmbedding, kKvHeads * kHeadDim});
    weight(blk + "attn_v", {kEmbedding, kKvHeads * kHeadDim});
    weight(blk + "attn_output", {kHeads * kHeadDim, kEmbedding});
    if (is("qwen2")) {
      add(blk + "attn_q.bias", {kHeads * kHeadDim}, 0.1F, 0);
      add(blk + "attn_k.bias", {kKvHeads * kHeadDim}, 0.1F, 0);
      add(blk + "attn_v.bias", {kKvHeads * kHeadDim}, 0.1F, 0);
    }
    if (is("qwen3") || is("qwen3moe") || is("gemma3")) {
      norm(blk + "attn_q_norm.weight", {kHeadDim});
      norm(blk + "attn_k_norm.weight", {kHeadDim});
    }
    if (is("gemma3")) {
      norm(blk + "post_attention_norm.weight", {kEmbedding});
      norm(blk + "post_ffw_norm.weight", {kEmbedding});
    }
  }

  void write_recurrence(const std::string& blk) {
    const bool second = is("falcon-h1");  // the second kind of state has heads
    const int heads = kStateHeads;
    const int mixed = second ? kStateInner + 2 * kStateSize : kStateInner;
    weight(blk + "ssm_in", {kEmbedding, second ? kStateInner + mixed + heads : 2 * kStateInner});
    weight(blk + "ssm_conv1d", {kConvolution, mixed});
    add(blk + "ssm_conv1d.bias", {mixed}, 0.1F, 0);
    weight(blk + "ssm_out", {kStateInner, kEmbedding});
    if (second) {
      add(blk + "ssm_dt.bias", {heads}, 0.1F, 0);
      add(blk + "ssm_a", {1, heads}, 0.3F, -0.5F);
      add(blk + "ssm_d", {1, heads}, 0.1F, 1);
      norm(blk + "ssm_norm.weight", {kStateInner, 1});
      return;
    }
    weight(blk + "ssm_x", {kStateInner, heads + 2 * kStateSize});
    weight(blk + "ssm_dt", {heads, kStateInner});
    add(blk + "ssm_dt.bias", {kStateInner}, 0.1F, 0);
    add(blk + "ssm_a", {kStateSize, kStateInner}, 0.3F, -0.5F);
    add(blk + "ssm_d", {kStateInner}, 0.1F, 1);
    if (!is("jamba")) return;
    norm(blk + "ssm_dt_norm.weight", {heads});
    norm(blk + "ssm_b_norm.weight", {kStateSize});
    norm(blk + "ssm_c_norm.weight", {kStateSize});
  }

  void write_feed_forward(const std::string& blk) {
    norm(blk + (is("falcon-h1") ? "ffn_norm" : "ffn_norm.weight"), {kEmbedding});
    if (is("qwen3moe")) {
      constexpr int kEach = kFeedForward / 2;
      weight(blk + "ffn_gate_inp", {kEmbedding, kExperts});
      weight(blk + "ffn_gate_exps", {kEmbedding, kEach, kExperts});
      weight(blk + "ffn_up_exps", {kEmbedding, kEach, kExperts});
      weight(blk + "ffn_down_exps", {kEach, kEmbedding, kExperts});
      return;
    }
    weight(blk + "ffn_gate", {kEmbedding, kFeedForward});
    weight(blk + "ffn_up", {kEmbedding, kFeedForward});
    weight(blk + "ffn_down", {kFeedForward, kEmbedding});
  }

  const std::string family_;
  ggml_context* tensors_ = nullptr;
  GgufHandle gguf_;
  Random random_{1};
};

}  // namespace flotilla::engine
