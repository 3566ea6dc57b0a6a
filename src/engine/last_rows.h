#pragma once

#include <cstddef>
#include <span>
#include <vector>

struct ggml_tensor;

namespace flotilla::engine {

// The last layer's normalised output of the tokens whose logits are computed: read while the graph
// runs, since libllama would give it only with the logits of every token. The engine's thread.
class LastRows {
 public:
  // Of the passes to come; off, a pass is computed as if nobody looked.
  void begin(bool wanted);
  // Numbers in a row; 0: no pass has shown one.
  std::size_t length() const { return length_; }
  // In the order of their tokens in the passes since begin().
  std::size_t count() const { return length_ == 0 ? 0 : rows_.size() / length_; }
  std::span<const float> row(std::size_t index) const;

  // libllama's cb_eval, with a LastRows as its data.
  static bool on_node(ggml_tensor* node, bool ask, void* rows);

 private:
  bool wanted_ = false;
  std::size_t length_ = 0;
  std::vector<float> rows_;
};

}  // namespace flotilla::engine
