#include "engine/tokenizer.h"

#include <cctype>
#include <limits>

#include "base/log.h"
#include "engine/control_texts.h"

namespace flotilla::engine {
namespace {

constexpr std::size_t kWholeMax = 8 << 10;  // bytes that the library gets at once

class LlamaTokenizer final : public Tokenizer {
 public:
  explicit LlamaTokenizer(ModelHandle model)
      : model_(std::move(model)),
        vocab_(llama_model_get_vocab(model_.get())),
        vocabulary_(llama_vocab_n_tokens(vocab_)),
        seams_(forms_with(LLAMA_TOKEN_ATTR_USER_DEFINED)),
        seams_parsed_(forms_with(LLAMA_TOKEN_ATTR_USER_DEFINED | LLAMA_TOKEN_ATTR_CONTROL |
                                 LLAMA_TOKEN_ATTR_UNKNOWN)),
        strips_(!forms_with(LLAMA_TOKEN_ATTR_LSTRIP | LLAMA_TOKEN_ATTR_RSTRIP).empty()) {}

  std::vector<Token> tokenize(std::string_view text, bool add_special,
                              bool parse_special) const override {
    if (text.size() <= kWholeMax || !can_cut()) return whole(text, add_special, parse_special);
    std::vector<Token> tokens;
    if (add_special && llama_vocab_get_add_bos(vocab_)) tokens.push_back(llama_vocab_bos(vocab_));
    for (const std::string_view piece : pieces_of(text, parse_special)) {
      const std::vector<Token> more = whole(piece, false, parse_special);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
    if (add_special && llama_vocab_get_add_eos(vocab_)) tokens.push_back(llama_vocab_eos(vocab_));
    return tokens;
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
  // Of which it is known what the library does at a text's beginning and end.
  bool can_cut() const {
    const auto type = llama_vocab_type(vocab_);
    return type == LLAMA_VOCAB_TYPE_SPM || type == LLAMA_VOCAB_TYPE_BPE;
  }

  std::vector<std::string> forms_with(unsigned attributes) const {
    std::vector<std::string> forms;
    for (Token token = 0; token < vocabulary_; ++token) {
      if ((static_cast<unsigned>(llama_vocab_get_attr(vocab_, token)) & attributes) != 0)
        forms.emplace_back(llama_vocab_get_text(vocab_, token));
    }
    return forms;
  }

  // The library's time grows by the square of the special tokens in a text. Those are seams by
  // themselves, so a long text is cut in front of some of them; where tokens take spaces beside
  // them along, not behind a space.
  std::vector<std::string_view> pieces_of(std::string_view text, bool parse_special) const {
    std::vector<std::string_view> pieces;
    std::string_view rest = text;
    std::size_t size = 0;
    for (const TextPart& part : (parse_special ? seams_parsed_ : seams_).split(text)) {
      const bool behind_space =
          size > 0 && std::isspace(static_cast<unsigned char>(rest[size - 1])) != 0;
      if (part.control && size >= kWholeMax && !(strips_ && behind_space)) {
        pieces.push_back(rest.substr(0, size));
        rest.remove_prefix(size);
        size = 0;
      }
      size += part.text.size();
    }
    pieces.push_back(rest);
    return pieces;
  }

  std::vector<Token> whole(std::string_view text, bool add_special, bool parse_special) const {
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
  const ControlTexts seams_;         // what is a token of its own in any text
  const ControlTexts seams_parsed_;  // and in text whose control tokens count
  const bool strips_;                // some tokens take spaces beside them along
};

}  // namespace

std::shared_ptr<const Tokenizer> make_llama_tokenizer(ModelHandle model) {
  return std::make_shared<LlamaTokenizer>(std::move(model));
}

}  // namespace flotilla::engine
