#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace flotilla::api {

namespace json {
class Reader;
}

// What a chat request has instead of messages when it is a text completion: its member "raw",
// {"prompts":["text" | [token ids], …],"echo":bool,"suffix":"text"}. Choice i * each + j is the
// j-th of prompt i.
struct RawPrompts {
  using Prompt = std::variant<std::string, std::vector<std::int32_t>>;
  std::vector<Prompt> prompts;  // not empty, nor is any of them
  int each = 1;                 // answers to each of them
  bool echo = false;            // an answer begins with its prompt's text
  std::string suffix;           // the answer fills in what is missing before it; empty: none
};

// All choices of one request together.
inline constexpr int kRawChoicesMax = 128;

// Token ids are not range-checked here. Sets the reader's fault.
RawPrompts read_raw_prompts(json::Reader& in);

// The field `name`, which a client must give: a text, several, one's tokens, or several's tokens.
std::vector<RawPrompts::Prompt> read_prompts(json::Reader& in, const char* name, std::size_t most);

}  // namespace flotilla::api
