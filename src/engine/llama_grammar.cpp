#include "engine/llama_grammar.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <llama-grammar.h>

#include "engine/grammar_bounds.h"
#include "engine/tokenizer.h"
#include "engine/trigger_watch.h"

namespace flotilla::engine {
namespace {

using RulesHandle = std::unique_ptr<llama_grammar, FreeWith<llama_grammar_free_impl>>;

constexpr float kNever = std::numeric_limits<float>::lowest();

// Every token's written form, control tokens included, as the library's grammars read them.
struct Forms {
  std::vector<std::string> texts;
  std::vector<bool> controls;  // that do not end an answer
};

std::shared_ptr<const Forms> make_forms(const ModelHandle& model) {
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  const auto tokenizer = make_llama_tokenizer(model);
  auto forms = std::make_shared<Forms>();
  const int count = llama_vocab_n_tokens(vocab);
  forms->texts.reserve(static_cast<std::size_t>(count));
  forms->controls.reserve(static_cast<std::size_t>(count));
  for (Token token = 0; token < count; ++token) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocab, token));
    const bool control = (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0;
    forms->texts.push_back(tokenizer->written(token));
    forms->controls.push_back(control && !llama_vocab_is_eog(vocab, token));
  }
  return forms;
}

class LlamaGrammar final : public Grammar {
 public:
  LlamaGrammar(ModelHandle model, std::shared_ptr<const Forms> forms, RulesHandle rules,
               const GrammarSpec& spec)
      : model_(std::move(model)),
        vocab_(llama_model_get_vocab(model_.get())),
        forms_(std::move(forms)),
        rules_(std::move(rules)),
        shown_controls_(spec.shown_controls) {
    if (spec.lazy()) {
      watch_.emplace(spec);
    } else {
      llama_grammar_accept_str(*rules_, spec.begun);
    }
  }

  bool allows(Token token) const override {
    if (watch_) return true;
    if (hidden(token)) return false;
    if (ended_) return llama_vocab_is_eog(vocab_, token);
    llama_token_data candidate{.id = token, .logit = 0, .p = 0};
    llama_token_data_array candidates{
        .data = &candidate, .size = 1, .selected = -1, .sorted = false};
    llama_grammar_apply_impl(*rules_, &candidates);
    return candidate.logit == 0;
  }

  void mask(std::span<float> logits) const override {
    if (watch_) return;
    // Shared by all grammars of a thread: a row of it is a megabyte.
    static thread_local std::vector<llama_token_data> candidates;
    candidates.clear();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const auto token = static_cast<Token>(i);
      if (logits[i] == kNever) continue;
      if (hidden(token) || (ended_ && !llama_vocab_is_eog(vocab_, token))) {
        logits[i] = kNever;
      } else if (!ended_) {
        candidates.push_back({.id = token, .logit = 0, .p = 0});
      }
    }
    llama_token_data_array array{
        .data = candidates.data(), .size = candidates.size(), .selected = -1, .sorted = false};
    if (array.size > 0) llama_grammar_apply_impl(*rules_, &array);
    for (std::size_t i = 0; i < array.size; ++i) {
      if (array.data[i].logit != 0) logits[static_cast<std::size_t>(array.data[i].id)] = kNever;
    }
  }

  void accept(Token token) override {
    // The library aborts at an end that the rules do not allow, and throws at a token.
    if (ended_ || llama_vocab_is_eog(vocab_, token)) return;
    try {
      if (watch_) {
        await(token);
      } else {
        llama_grammar_accept_token(*rules_, token, form(token));
      }
    } catch (const std::exception&) {
      ended_ = true;
    }
  }

 private:
  const std::string& form(Token token) const {
    static const std::string none;
    const auto at = static_cast<std::size_t>(token);
    return token >= 0 && at < forms_->texts.size() ? forms_->texts[at] : none;
  }

  // It would count as text to the rules and be nothing in the answer.
  bool hidden(Token token) const {
    const auto at = static_cast<std::size_t>(token);
    return token >= 0 && at < forms_->controls.size() && forms_->controls[at] &&
           std::ranges::find(shown_controls_, token) == shown_controls_.end();
  }

  void await(Token token) {
    const std::string& text = form(token);
    recent_.push_back({token, written_});
    written_ += text.size();
    const auto begin = watch_->add(text);
    if (!begin) {
      if (recent_.size() > kRecentMax)
        recent_.erase(recent_.begin(), recent_.begin() + kRecentMax / 2);
      return;
    }
    const std::string_view since = watch_->since(*begin);
    // Tokens that reach over the beginning count, the first of them in part.
    for (std::size_t i = 0; i < recent_.size(); ++i) {
      const std::size_t end = i + 1 < recent_.size() ? recent_[i + 1].at : written_;
      if (end <= *begin) continue;
      const std::size_t from = std::max(recent_[i].at, *begin) - *begin;
      llama_grammar_accept_token(*rules_, recent_[i].token,
                                 std::string(since.substr(from, end - *begin - from)));
    }
    watch_.reset();
    recent_.clear();
  }

  static constexpr std::ptrdiff_t kRecentMax = 1024;  // tokens; more than a trigger's bytes

  struct Written {
    Token token;
    std::size_t at;
  };

  const ModelHandle model_;
  const llama_vocab* const vocab_;
  const std::shared_ptr<const Forms> forms_;
  const RulesHandle rules_;
  const std::vector<Token> shown_controls_;
  std::optional<TriggerWatch> watch_;  // while the rules do not hold yet
  std::vector<Written> recent_;
  std::size_t written_ = 0;
  bool ended_ = false;  // what was written does not follow the rules
};

class LlamaGrammars final : public GrammarMaker {
 public:
  explicit LlamaGrammars(ModelHandle model)
      : model_(std::move(model)), forms_(make_forms(model_)) {}

  Result<std::unique_ptr<Grammar>> make(const GrammarSpec& spec) const override {
    if (auto bounded = check_cost(spec); !bounded) return fail(bounded.error());
    try {
      RulesHandle rules(llama_grammar_init_impl(llama_model_get_vocab(model_.get()),
                                                spec.rules.c_str(), "root", /*lazy=*/false, nullptr,
                                                0, nullptr, 0));
      if (!rules) {
        return fail(Code::InvalidArgument,
                    "the grammar's rules cannot be used: they do not parse, have no rule \"root\", "
                    "or a rule begins with itself");
      }
      return std::make_unique<LlamaGrammar>(model_, forms_, std::move(rules), spec);
    } catch (const std::exception& e) {
      return fail(Code::InvalidArgument,
                  fmt::format("the grammar's rules cannot be used: {}", e.what()));
    }
  }

 private:
  Result<void> check_cost(const GrammarSpec& spec) const {
    std::string wrong;
    if (const std::size_t size = written_out(spec.rules); size > kWrittenOutMax) {
      wrong = fmt::format("come to {} elements when repetitions are written out, and {} are taken",
                          size, kWrittenOutMax);
    } else if (spec.by_hand &&
               longest_skip(spec.rules, llama_model_get_vocab(model_.get())) > kSkipsMax) {
      wrong = fmt::format(
          "leave more than {} parts in a row open, as in a? b? c?; make some of "
          "them necessary, or repeat fewer that may be empty",
          kSkipsMax);
    }
    if (wrong.empty()) return {};
    return fail({.code = Code::InvalidArgument,
                 .message = "the grammar's rules " + wrong,
                 .param = spec.by_hand ? "grammar" : "",
                 .reason = "grammar_too_complex"});
  }

  const ModelHandle model_;
  const std::shared_ptr<const Forms> forms_;
};

}  // namespace

std::shared_ptr<const GrammarMaker> make_llama_grammars(const ModelHandle& model) {
  return std::make_shared<LlamaGrammars>(model);
}

}  // namespace flotilla::engine
