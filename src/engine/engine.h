#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

// The engine as the scheduler sees it: slots that hold a KV cache, and forward passes over them.
// llama.cpp stands behind it in llama_engine.cpp; fake_engine.h is a deterministic one for tests.
namespace flotilla::engine {

using Token = std::int32_t;

enum class KvType { F16, Q8_0 };
enum class Kernels { Stock, Flotilla };  // ggml's own, or ours where they are the better ones

// Called before each tensor with the bytes read so far and in all; false stops the load.
using LoadProgress = std::function<bool(std::int64_t loaded_bytes, std::int64_t total_bytes)>;

struct LoadOptions {
  std::filesystem::path model;
  int width = 1;              // slots: sequences that can decode together, 1-64
  int context = 0;            // most tokens of one sequence; 0 = what the model was trained for
  int window = 0;             // KV cells in all; 0 = width x context
  int step_tokens_max = 512;  // most tokens of one forward pass
  int threads = 1;
  int spin = -1;  // 0-100: how long idle threads poll for work before they sleep; -1 =
                  // 50, or 0 when there are more threads than cores
  int gpu_layers = 0;
  KvType kv_type = KvType::F16;
  Kernels kernels = Kernels::Flotilla;
  std::string chat_template;  // overrides the model's own when not empty
  int draft_tokens_max = 0;   // drafted tokens of one forward pass; each needs memory for logits
};

// What was really loaded: never what was asked for.
struct EngineInfo {
  std::string description;   // "llama 135M Q4_1"
  std::string quantization;  // "Q4_1"
  int vocabulary = 0;        // tokens; valid ids are [0, vocabulary)
  int context_trained = 0;
  int context = 0;           // most tokens of one sequence, prompt and answer
  int width = 1;             // slots; lower than asked when the window is too small
  std::string width_reason;  // why lower, else empty
  int step_tokens_max = 0;
  std::int64_t model_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::string numerics;        // replicas with the same id compute the same bits
  bool exact_resume = false;   // bit-identical whatever shares the pass
  bool can_cut = true;         // truncate() can keep a part of a slot
  int vector_length = 0;       // numbers in a text's vector; 0: it makes none
  bool generates_text = true;  // false: it was made for vectors alone
  bool whole_prompts = false;  // a chunk must be all of its prompt, which leaves no cells
  int draft_tokens_max = 0;    // 0: chunks have no drafts
  std::string draft_reason;    // why it could have none, else empty
};

// A run of one sequence's tokens in one forward pass: cells [pos, pos + tokens.size()) of a slot.
struct Chunk {
  int slot = 0;
  int pos = 0;
  std::span<const Token> tokens;
  bool wants_logits = false;  // of the last token
  bool wants_vector = false;  // of the last token, whose logits are wanted too
  // Of its tokens, the last so many are guesses: the logits of each, and of the token before them,
  // are wanted too.
  int drafted = 0;
};

enum class StepOutcome {
  Done,
  Aborted,  // request_abort() was called: every chunk's slot must be re-read with length()
  NoSpace,  // the cache is full; nothing has changed
  Failed,   // the engine's own failure; the slots of this step are emptied, others are whole
};

// One thread owns it, the scheduler's; request_abort() alone may be called from any.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // One forward pass. Chunks are sorted by slot, one at most a slot, each begins at length(slot),
  // and they hold at most step_tokens_max tokens, draft_tokens_max of them drafted. A violation is
  // our bug (CHECK).
  virtual StepOutcome decode(std::span<const Chunk> chunks) = 0;
  // Logits [vocabulary] of chunk `index` of the last decode(), which asked for them. Valid until
  // the next decode().
  virtual std::span<const float> logits(std::size_t index) const = 0;
  // Of the token that stands `drafted` tokens after the one before chunk `index`'s draft.
  virtual std::span<const float> logits(std::size_t index, std::size_t drafted) const = 0;
  // What the model makes of all tokens up to the last one of chunk `index`, which asked for it: its
  // last layer's normalised output there, [vector_length].
  virtual std::span<const float> vector(std::size_t index) const = 0;

  virtual int length(int slot) const = 0;  // cells held
  // Keeps the first `length` cells; 0 empties. A backend that cannot go back keeps none.
  virtual void truncate(int slot, int length) = 0;
  // Empties `from` into the empty slot `to`. Slots in use must be dense (0..n-1) for the backend to
  // compute them in one pass; the scheduler moves the highest into a hole.
  virtual Result<void> move(int from, int to) = 0;
  // A slot's cells as bytes, and back into an empty slot of this same engine.
  virtual Result<std::vector<std::byte>> save(int slot) const = 0;
  virtual Result<void> restore(int slot, std::span<const std::byte> state) = 0;

  // Gives freed memory back to the system where the backend can; names what it did.
  virtual std::string trim_memory() = 0;
  // Ends the pass under way early; when none is, the next one: a request is never lost to a race.
  virtual void request_abort() noexcept = 0;
};

// Tokens by which a model fills in what is missing between two texts: before the first, before the
// second, and before its answer.
struct FillTokens {
  Token prefix = 0;
  Token suffix = 0;
  Token middle = 0;
};

// Words <-> tokens. Immutable after load; any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // `parse_special`: control tokens written out in `text` become control tokens (templates only;
  // text that a user typed never).
  virtual std::vector<Token> tokenize(std::string_view text, bool add_special,
                                      bool parse_special) const = 0;
  // The token's bytes: often a part of a character. Control tokens and unknown ids are empty.
  virtual std::string piece(Token token) const = 0;
  // The token's written form: as piece(), but control tokens have one too ("<|im_end|>").
  virtual std::string written(Token token) const = 0;
  virtual bool ends_generation(Token token) const = 0;
  virtual int vocabulary() const = 0;
  // None: the model was not made to fill in.
  virtual std::optional<FillTokens> fill_tokens() const { return std::nullopt; }
};

class ChatTemplate;  // chat.h
class GrammarMaker;  // grammar.h

// A loaded model: an engine for the scheduler's thread, and text tools for everyone.
struct LoadedModel {
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: it generates no text
  std::shared_ptr<const GrammarMaker> grammars = {};  // null: the engine has none
};

}  // namespace flotilla::engine
