#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flotilla::api {

// A token's part in an answer. Bytes, since a token is often a part of a character.
struct TokenLogprob {
  std::string bytes;
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top = {};  // bytes, logprob; likeliest first
};

// id and name come with a call's first delta, which has a name.
struct ToolCallDelta {
  int index = 0;
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
};

// What a choice's answer grows by.
struct ChatDelta {
  std::string content = {};
  std::string reasoning_content = {};
  std::vector<ToolCallDelta> tool_calls = {};
  std::vector<TokenLogprob> logprobs = {};
  // In the last one: the client's stop string that ended it, "stop_reason" beside finish_reason.
  std::string stop = {};

  bool empty() const { return content.empty() && reasoning_content.empty() && tool_calls.empty(); }
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;
};

// The block x_flotilla of the last chunk and of the whole answer.
struct ServedBy {
  std::string node;
  std::string replica;
  double queued_ms = 0;
  double ttft_ms = 0;
  double tokens_per_s = 0;
  bool resumed = false;
  std::int64_t cached_tokens = 0;
};

// What all chunks of an answer share.
struct AnswerHead {
  std::string id;            // chatcmpl-…
  std::int64_t created = 0;  // unix s
  std::string model;         // the alias that the client sent
};

void append_logprob(std::string& out, const TokenLogprob& token);  // {"token":…}
void append_usage(std::string& out, const Usage& usage);           // {"prompt_tokens":…}
void append_served_by(std::string& out, const ServedBy& served);   // {"node":…}

// Writes chat.completion.chunk objects as `data: …\n\n` blocks at the end of a buffer: no DOM, one
// pass over the text. `with_usage` is the client's stream_options.include_usage: then each chunk
// says "usage":null and one without choices comes last.
class ChatChunkWriter {
 public:
  ChatChunkWriter(const AnswerHead& head, bool with_usage);

  // `text`: the begin of the content, where there is one before the first token. `usage`: so far,
  // for who must tell of the prompt at once.
  void role(std::string& out, int choice, std::string_view text = {},
            const Usage* usage = nullptr) const;
  // In one chunk, so that no failure falls between its parts.
  void delta(std::string& out, int choice, const ChatDelta& delta) const;
  // With the last of the text. `served`: in an answer's last chunk.
  void finish(std::string& out, int choice, const ChatDelta& delta, std::string_view reason,
              const ServedBy* served) const;
  void usage(std::string& out, const Usage& usage, const ServedBy& served) const;

 private:
  std::string begin_;  // up to "choices":[
  std::string tail_;   // after the choices
};

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace flotilla::api
