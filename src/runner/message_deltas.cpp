#include "runner/message_deltas.h"

#include <utility>

#include <fmt/format.h>

#include "base/sha256.h"

namespace flotilla::runner {
namespace {

// What `now` has beyond `shown`. A parser that changes its mind about what was shown is not
// followed: nothing can be taken back.
std::string grow(std::string& shown, const std::string& now) {
  if (!now.starts_with(shown)) return {};
  std::string more = now.substr(shown.size());
  shown += more;
  return more;
}

// Nine letters and digits: the only form that all templates take back in a later request.
std::string make_id(const std::string& name, std::size_t index) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuv";
  const std::string text = fmt::format("{}/{}", name, index);
  const std::string_view parts[] = {text};
  std::string id = sha256(parts).substr(0, 9);
  for (char& c : id) c = kDigits[static_cast<unsigned char>(c) % kDigits.size()];
  return id;
}

}  // namespace

MessageDeltas::MessageDeltas(std::shared_ptr<const engine::AnswerParser> parser, std::string name)
    : parser_(std::move(parser)), name_(std::move(name)) {}

api::ChatDelta MessageDeltas::take(std::string_view text, bool last) {
  text_ += text;
  const engine::ParsedAnswer now = parser_->parse(text_, last);
  api::ChatDelta delta;
  // What was shown as a call is not shown again as text.
  if (now.tool_calls.size() < shown_.tool_calls.size()) return delta;
  delta.reasoning_content = grow(shown_.reasoning_content, now.reasoning_content);
  delta.content = grow(shown_.content, now.content);
  for (std::size_t i = 0; i < now.tool_calls.size(); ++i) {
    const engine::ToolCall& call = now.tool_calls[i];
    const int index = static_cast<int>(i);
    if (i < shown_.tool_calls.size()) {
      std::string more = grow(shown_.tool_calls[i].arguments, call.arguments);
      if (!more.empty()) {
        delta.tool_calls.push_back(
            {.index = index, .id = {}, .name = {}, .arguments = std::move(more)});
      }
      continue;
    }
    if (call.name.empty()) break;
    delta.tool_calls.push_back({.index = index,
                                .id = call.id.empty() ? make_id(name_, i) : call.id,
                                .name = call.name,
                                .arguments = call.arguments});
    shown_.tool_calls.push_back(call);
  }
  return delta;
}

}  // namespace flotilla::runner
