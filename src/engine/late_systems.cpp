#include "engine/late_systems.h"

#include <string>

namespace flotilla::engine {
namespace {

constexpr const char* kSystem = "system";
constexpr const char* kUser = "user";

void join(ChatMessage& to, const std::string& more) {
  if (!to.content.empty() && !more.empty()) to.content += "\n\n";
  to.content += more;
}

}  // namespace

std::vector<ChatMessage> put_late_systems_in_turns(std::span<const ChatMessage> messages) {
  std::vector<ChatMessage> out;
  bool in_front = true;     // nothing but system messages so far
  bool joins_next = false;  // the last one is a system message's: the user's own belongs to it
  for (const ChatMessage& message : messages) {
    const bool system = message.role == kSystem;
    in_front = in_front && system;
    if (in_front) {
      if (out.empty()) {
        out.push_back(message);
      } else {
        join(out.front(), message.content);
      }
      continue;
    }
    const bool after_user = !out.empty() && out.back().role == kUser;
    if (after_user && (system || (joins_next && message.role == kUser))) {
      join(out.back(), message.content);
    } else {
      out.push_back(message);
      if (system) out.back().role = kUser;
    }
    joins_next = system;
  }
  return out;
}

}  // namespace flotilla::engine
