#include "runner/answer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace flotilla::runner {
namespace {

constexpr std::size_t kCharacterBytesMax = 4;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// `bytes` end with the beginning of a character.
bool ends_unfinished(std::string_view bytes) {
  std::size_t continuation = 0;
  while (continuation < bytes.size()) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - 1 - continuation]);
    if ((byte & 0xC0U) != 0x80U) {
      const std::size_t length = byte < 0xC0U ? 1 : byte < 0xE0U ? 2 : byte < 0xF0U ? 3 : 4;
      return length > continuation + 1;
    }
    ++continuation;
  }
  return false;
}

}  // namespace

std::string_view to_string(FinishReason reason) {
  return reason == FinishReason::Stop ? "stop" : "length";
}

std::string given_text(const AnswerSpec& spec, const engine::Tokenizer& tokenizer) {
  batch::StopText text(spec.stops);
  std::string shown;
  for (const engine::Token token : spec.given) {
    const bool control = std::ranges::find(spec.shown_controls, token) != spec.shown_controls.end();
    shown += text.add(control ? tokenizer.written(token) : tokenizer.piece(token)).text;
  }
  // What was shown in whole tokens has nothing held back.
  if (spec.top_logprobs) shown += text.finish();
  return shown;
}

Answer::Answer(const AnswerSpec& spec, std::span<const engine::Token> prompt,
               std::shared_ptr<const engine::Tokenizer> tokenizer,
               const std::vector<engine::Token>& end_tokens,
               std::unique_ptr<engine::Grammar> grammar)
    : sampler_(spec.sampling, end_tokens, std::move(grammar)),
      thoughts_(spec.thoughts),
      text_(spec.stops),
      tokenizer_(std::move(tokenizer)),
      tokens_max_(spec.tokens_max),
      top_logprobs_(spec.top_logprobs),
      shown_controls_(spec.shown_controls) {
  sampler_.accept_prompt(prompt);
  std::size_t released = 0;
  for (const engine::Token token : spec.given) {
    if (finished_) break;  // what follows the end was never part of it
    sampler_.accept_given(token);
    released += advance(token).size();
  }
  if (top_logprobs_ && !finished_) skip_ = given_text(spec, *tokenizer_).size() - released;
}

Answer::Step Answer::next(std::span<const float> logits) {
  CHECK(!finished_);
  Step step;
  const auto forced = thoughts_.forced();
  step.token = forced && sampler_.allows(*forced)
                   ? *forced
                   : sampler_.sample(logits, static_cast<std::uint64_t>(tokens_));
  if (step.token == engine::kNoToken || tokenizer_->ends_generation(step.token)) {
    finished_ = FinishReason::Stop;
    show(text_.finish(), step);
    return step;
  }
  sampler_.accept(step.token);
  step.counts = true;
  unshown_.push_back(step.token);
  if (top_logprobs_) {
    logprobs_.push_back(engine::logprob_of(logits, step.token, *top_logprobs_));
    whole_.add(piece(step.token));
  }
  show(advance(step.token), step);
  step.stop = stop_;
  return step;
}

std::string Answer::piece(engine::Token token) const {
  const bool control = std::ranges::find(shown_controls_, token) != shown_controls_.end();
  return control ? tokenizer_->written(token) : tokenizer_->piece(token);
}

// What the token lets be shown, by stop strings and characters.
std::string Answer::advance(engine::Token token) {
  ++tokens_;
  const std::string bytes = piece(token);
  thoughts_.add(token, bytes);
  batch::StopText::Output output = text_.add(bytes);
  last_bytes_ += bytes;
  if (last_bytes_.size() > kCharacterBytesMax) {
    last_bytes_.erase(0, last_bytes_.size() - kCharacterBytesMax);
  }
  if (output.stopped) {
    stopped_ = true;
    stop_ = std::move(output.stop);
    finished_ = FinishReason::Stop;
  } else if (tokens_ >= tokens_max_) {
    output.text += cut();
    finished_ = FinishReason::Length;
  }
  return std::move(output.text);
}

void Answer::show(std::string released, Step& step) {
  const std::size_t skipped = std::min(skip_, released.size());
  released.erase(0, skipped);
  skip_ -= skipped;
  if (!top_logprobs_) {
    step.text = std::move(released);
    if (finished_ || !step.text.empty()) step.tokens = std::exchange(unshown_, {});
    return;
  }
  ready_ += released;
  std::size_t tokens = unshown_.size();
  std::size_t bytes = ready_.size();
  if (!finished_) {
    const auto part = whole_.take(ready_.size());
    tokens = part.tokens;
    bytes = part.bytes;
  }
  // Tokens of a stop string have no part in the answer.
  const std::size_t told = stopped_ ? whole_.begun(ready_.size()) : tokens;
  step.text = ready_.substr(0, bytes);
  ready_.erase(0, bytes);
  const auto take = [](auto& from, std::size_t count) {
    const auto end = from.begin() + static_cast<std::ptrdiff_t>(count);
    std::remove_reference_t<decltype(from)> taken(std::make_move_iterator(from.begin()),
                                                  std::make_move_iterator(end));
    from.erase(from.begin(), end);
    return taken;
  };
  step.tokens = take(unshown_, tokens);
  step.logprobs = take(logprobs_, told);
}

// What is left when a limit ends the answer: a character that it cut in two is not shown at all.
std::string Answer::cut() {
  std::string text = text_.finish();
  if (ends_unfinished(last_bytes_) && text.ends_with(kReplacement)) {
    text.resize(text.size() - kReplacement.size());
  }
  return text;
}

}  // namespace flotilla::runner
