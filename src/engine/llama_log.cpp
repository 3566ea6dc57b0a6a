#include "engine/llama_log.h"

#include <cstdlib>
#include <log.h>
#include <mutex>
#include <string_view>
#include <vector>

#include <ggml.h>
#include <llama.h>

#include "base/check.h"
#include "base/log.h"

namespace flotilla::engine {
namespace {

// The callback gets fragments of lines, from any thread.
struct LlamaLog {
  std::mutex mutex;
  std::string line;
  ggml_log_level level = GGML_LOG_LEVEL_NONE;
  bool collecting = false;
  std::vector<std::string> errors;
};

LlamaLog& llama_log() {
  static LlamaLog log;
  return log;
}

void take_fragment(ggml_log_level level, const char* text, void* /*user_data*/) {
  LlamaLog& log = llama_log();
  const std::lock_guard lock(log.mutex);
  if (level != GGML_LOG_LEVEL_CONT) log.level = level;
  for (const char c : std::string_view(text)) {
    if (c != '\n') {
      log.line.push_back(c);
      continue;
    }
    if (log.level == GGML_LOG_LEVEL_ERROR && log.collecting) log.errors.push_back(log.line);
    if (!log.line.empty()) log::debug("{}", log.line);
    log.line.clear();
  }
}

// ggml calls this before abort(): a last line that says why the process ends.
void note_abort(const char* message) { log::error("llama.cpp gave up: {}", message); }

// "load_tensors: error loading model: what is wrong" -> "what is wrong"
std::string_view reason(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon != line.npos && line.substr(0, colon).find(' ') == line.npos) {
    line.remove_prefix(colon + 2);
  }
  for (const std::string_view prefix : {"error loading model: ", "error loading model "}) {
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  }
  return line;
}

bool says_only_failed(std::string_view line) {
  return line.empty() || line.starts_with("failed to load model") ||
         line.starts_with("failed to read key-value pairs") ||
         line.starts_with("failed to read tensor info");
}

}  // namespace

void route_llama_log() {
  static const bool once = [] {
    // Else ggml starts a debugger for a backtrace when it aborts, while clients wait.
    setenv("GGML_NO_BACKTRACE", "1", 0);
    llama_log_set(take_fragment, nullptr);
    ggml_set_abort_callback(note_abort);
    common_log_set_verbosity_thold(-1);
    return true;
  }();
  (void)once;
}

LlamaErrors::LlamaErrors() {
  LlamaLog& log = llama_log();
  const std::lock_guard lock(log.mutex);
  CHECK(!log.collecting);
  log.collecting = true;
  log.errors.clear();
}

LlamaErrors::~LlamaErrors() {
  LlamaLog& log = llama_log();
  const std::lock_guard lock(log.mutex);
  log.collecting = false;
}

std::string LlamaErrors::text() const {
  LlamaLog& log = llama_log();
  const std::lock_guard lock(log.mutex);
  std::string text;
  for (const std::string& line : log.errors) {
    const std::string_view words = reason(line);
    if (says_only_failed(words)) continue;
    if (!text.empty()) text += "; ";
    text += words;
  }
  if (text.empty() && !log.errors.empty()) text = reason(log.errors.front());
  return text;
}

}  // namespace flotilla::engine
