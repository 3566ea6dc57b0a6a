#pragma once

#include <string>
#include <string_view>

#include "api/chat_chunks.h"

// A chat answer with one choice as a client sees it, of any server, held against OpenAI's form.
namespace flotilla::api {

struct ChatSeen {
  std::string text;  // reasoning_content, where there is some, and content
  std::string finish_reason;
  bool has_usage = false;
  Usage usage;
  std::int64_t total_tokens = 0;
  std::string fault;  // the first thing wrong in its form; empty: none
};

ChatSeen read_whole_chat(std::string_view body);
// A whole stream: one id, a role first, one finish_reason and no text behind it, [DONE] at the end.
ChatSeen read_streamed_chat(std::string_view body);

}  // namespace flotilla::api
