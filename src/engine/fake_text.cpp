#include "engine/fake_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/fake_engine.h"

namespace flotilla::engine {
namespace {

constexpr std::string_view kTurnStart = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>";

void append_bytes(std::string_view text, std::vector<Token>& tokens) {
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

class FakeTokenizer final : public Tokenizer {
 public:
  std::vector<Token> tokenize(std::string_view text, bool /*add_special*/,
                              bool parse_special) const override {
    std::vector<Token> tokens;
    tokens.reserve(text.size());
    while (!text.empty()) {
      if (parse_special && text.starts_with(kTurnStart)) {
        tokens.push_back(kFakeTurnStart);
        text.remove_prefix(kTurnStart.size());
      } else if (parse_special && text.starts_with(kTurnEnd)) {
        tokens.push_back(kFakeTurnEnd);
        text.remove_prefix(kTurnEnd.size());
      } else {
        append_bytes(text.substr(0, 1), tokens);
        text.remove_prefix(1);
      }
    }
    return tokens;
  }

  std::string piece(Token token) const override {
    return token >= 0 && token < 256 ? std::string(1, static_cast<char>(token)) : std::string();
  }

  std::string written(Token token) const override {
    if (token == kFakeTurnStart) return std::string(kTurnStart);
    if (token == kFakeTurnEnd) return std::string(kTurnEnd);
    return piece(token);
  }

  bool ends_generation(Token token) const override { return token == kFakeTurnEnd; }
  int vocabulary() const override { return kFakeVocabulary; }
};

class FakeChatTemplate final : public ChatTemplate {
 public:
  Result<RenderedChat> render(std::span<const ChatMessage> messages,
                              const ChatPromptOptions& options) const override {
    const bool must_call = !options.tools.empty() && options.tool_use == ToolUse::Required;
    if (must_call || !options.answer_schema.empty() || !options.grammar.empty()) {
      return fail(Code::InvalidArgument, "the synthetic model cannot be guided");
    }
    constexpr std::array<std::string_view, 4> roles = {"system", "user", "assistant", "tool"};
    RenderedChat chat;
    std::vector<Token>& tokens = chat.prompt;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (std::ranges::find(roles, message.role) == roles.end()) {
        return fail(Code::InvalidArgument,
                    fmt::format("the chat template knows no role '{}'", message.role));
      }
      begin_turn(message.role, tokens);
      append_bytes(message.content, tokens);
      for (const ToolCall& call : message.tool_calls) {
        append_bytes(call.name + call.arguments, tokens);
      }
      if (options.continue_final_message && i + 1 == messages.size()) return chat;
      tokens.push_back(kFakeTurnEnd);
      append_bytes("\n", tokens);
    }
    if (options.add_generation_prompt) begin_turn("assistant", tokens);
    return chat;
  }

 private:
  static void begin_turn(std::string_view role, std::vector<Token>& tokens) {
    tokens.push_back(kFakeTurnStart);
    append_bytes(role, tokens);
    append_bytes("\n", tokens);
  }
};

}  // namespace

std::shared_ptr<const Tokenizer> make_fake_tokenizer() { return std::make_shared<FakeTokenizer>(); }

std::shared_ptr<const ChatTemplate> make_fake_chat_template() {
  return std::make_shared<FakeChatTemplate>();
}

}  // namespace flotilla::engine
