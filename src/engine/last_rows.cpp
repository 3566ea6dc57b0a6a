#include "engine/last_rows.h"

#include <string_view>

#include <ggml-backend.h>
#include <ggml.h>

#include "base/check.h"

namespace flotilla::engine {

void LastRows::begin(bool wanted) {
  wanted_ = wanted;
  rows_.clear();
}

std::span<const float> LastRows::row(std::size_t index) const {
  CHECK(index < count());
  return std::span(rows_).subspan(index * length_, length_);
}

bool LastRows::on_node(ggml_tensor* node, bool ask, void* rows) {
  auto& self = *static_cast<LastRows*>(rows);
  if (ask) {
    // The names that libllama gives it, whatever the architecture.
    const std::string_view name(node->name);
    return self.wanted_ && (name == "result_norm" || name == "result_embd");
  }
  if (node->type != GGML_TYPE_F32) return true;
  const std::size_t before = self.rows_.size();
  self.length_ = static_cast<std::size_t>(node->ne[0]);
  self.rows_.resize(before + static_cast<std::size_t>(ggml_nelements(node)));
  ggml_backend_tensor_get(node, self.rows_.data() + before, 0, ggml_nbytes(node));
  return true;
}

}  // namespace flotilla::engine
