#pragma once

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "engine/llama_engine.h"

// The real small model that this folder's tests load.
namespace flotilla::engine {

// Under sanitizers the kernels take ten times as long: properties are looked at in fewer schedules
// there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline std::filesystem::path sample_model_file() {
  const char* given = std::getenv("FLOTILLA_SAMPLE_MODEL");
  return given != nullptr ? given : ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

// Small and quick: 8 slots of 256 tokens. One thread, since tests share the cores, and threads that
// wait for each other are slowed down most by that.
inline LoadOptions sample_options() {
  LoadOptions options;
  options.model = sample_model_file();
  options.width = 8;
  options.context = 256;
  options.threads = 1;
  return options;
}

// Loaded once for all tests of the process; each test empties the slots that it uses.
inline LoadedModel& sample_model() {
  static LoadedModel model = [] {
    auto loaded = load_llama(sample_options(), {});
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message << " (fetch it: tools/fetch.py)";
      std::abort();
    }
    return std::move(*loaded);
  }();
  return model;
}

}  // namespace flotilla::engine
