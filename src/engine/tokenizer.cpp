#include "engine/tokenizer.h"

#include <limits>

#include "base/log.h"

namespace flotilla::engine {
namespace {

class LlamaTokenizer final : public Tokenizer {
 public:
  explicit LlamaTokenizer(ModelHandle model)
      : model_(std::move(model)),
        vocab_(llama_model_get_vocab(model_.get())),
        vocabulary_(llama_vocab_n_tokens(vocab_)) {}

  std::vector<Token> tokenize(std::string_view text, bool add_special,
                              bool parse_special) const override {
    if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
      log::error("a text of {} bytes is too long to tokenize", text.size());
      return {};
    }
    const auto size = static_cast<std::int32_t>(text.size());
    std::vector<Token> tokens(text.size() / 2 + 8);
    try {
      for (;;) {
        const std::int32_t count =
            llama_tokenize(vocab_, text.data(), size, tokens.data(),
                           static_cast<std::int32_t>(tokens.size()), add_special, parse_special);
        if (count == std::numeric_limits<std::int32_t>::min()) return {};
        if (count >= 0) {
          tokens.resize(static_cast<std::size_t>(count));
          return tokens;
        }
        tokens.resize(static_cast<std::size_t>(-count));
      }
    } catch (const std::exception& e) {
      // Rare words of rare vocabularies: libllama looks up a byte that the model has no token for.
      log::error("the tokenizer failed: {}", e.what());
      return {};
    }
  }

  std::string piece(Token token) const override { return form_of(token, false); }
  std::string written(Token token) const override { return form_of(token, true); }

  bool ends_generation(Token token) const override {
    return token >= 0 && token < vocabulary_ && llama_vocab_is_eog(vocab_, token);
  }

  int vocabulary() const override { return vocabulary_; }

  std::optional<FillTokens> fill_tokens() const override {
    const FillTokens tokens{.prefix = llama_vocab_fim_pre(vocab_),
                            .suffix = llama_vocab_fim_suf(vocab_),
                            .middle = llama_vocab_fim_mid(vocab_)};
    const bool all = tokens.prefix >= 0 && tokens.suffix >= 0 && tokens.middle >= 0;
    return all ? std::optional(tokens) : std::nullopt;
  }

 private:
  std::string form_of(Token token, bool special) const {
    // libllama throws or crashes on ids that it does not know, and ids can come from outside.
    if (token < 0 || token >= vocabulary_) return {};
    std::string form(16, '\0');
    for (;;) {
      const std::int32_t size = llama_token_to_piece(
          vocab_, token, form.data(), static_cast<std::int32_t>(form.size()), 0, special);
      form.resize(static_cast<std::size_t>(size < 0 ? -size : size));
      if (size >= 0) return form;
    }
  }

  const ModelHandle model_;
  const llama_vocab* const vocab_;
  const int vocabulary_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_llama_tokenizer(ModelHandle model) {
  return std::make_shared<LlamaTokenizer>(std::move(model));
}

}  // namespace flotilla::engine
