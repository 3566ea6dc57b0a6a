#pragma once

#include <gguf.h>
#include <memory>

#include <ggml-cpu.h>
#include <llama.h>

// Owners of libllama's objects; for this folder's .cpp files only.
namespace flotilla::engine {

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using ContextHandle = std::unique_ptr<llama_context, FreeWith<llama_free>>;
using ThreadPoolHandle = std::unique_ptr<ggml_threadpool, FreeWith<ggml_threadpool_free>>;
using GgufHandle = std::unique_ptr<gguf_context, FreeWith<gguf_free>>;
using ModelHandle = std::shared_ptr<llama_model>;  // the engine's and the text tools'

}  // namespace flotilla::engine
