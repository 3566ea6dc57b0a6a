#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/chat_chunks.h"
#include "base/result.h"

namespace flotilla::api {

// Makes the whole chat.completion of a stream's chunks, ours or another engine's.
class ChatAssembler {
 public:
  ChatAssembler();
  ~ChatAssembler();
  ChatAssembler(ChatAssembler&&) noexcept;
  ChatAssembler& operator=(ChatAssembler&&) noexcept;

  // The data of one SSE event; "[DONE]" is accepted and ignored. An error event comes back as its
  // Error, what is not a chunk as BadGateway.
  Result<void> feed(std::string_view chunk_json);
  // Every choice that was seen has its finish_reason, and there is one.
  bool complete() const;
  // The chat.completion object. Parts that no chunk had are absent (usage) or null.
  std::string answer() const;

  // The same without JSON, for who writes no chunks.
  void begin(const AnswerHead& head);
  void add(int choice, const ChatDelta& delta);
  void finish_choice(int choice, std::string_view reason);
  void set_usage(const Usage& usage, const ServedBy& served);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flotilla::api
