#pragma once

#include <string>

namespace flotilla::engine {

// Sends libllama's log to ours, at debug level, and silences llama-common's own. Idempotent.
void route_llama_log();

// libllama reports why something failed only in its log: this collects the error lines that are
// written while it lives. One at a time.
class LlamaErrors {
 public:
  LlamaErrors();
  ~LlamaErrors();
  LlamaErrors(const LlamaErrors&) = delete;
  LlamaErrors& operator=(const LlamaErrors&) = delete;

  // The reasons, without the names of functions and without lines that only say "failed"; joined by
  // "; ". Empty when there was none.
  std::string text() const;
};

}  // namespace flotilla::engine
