#include "engine/stand_ins.h"

#include <cstdlib>
#include <json.h>

#include <fmt/format.h>

#include "base/random.h"

namespace flotilla::engine {

std::string StandIns::hide(std::string_view text) {
  if (!controls_.occurs_in(text)) return std::string(text);
  if (word_.empty()) word_ = "Typed" + random_hex(16) + "x";
  std::string hidden;
  for (const TextPart& part : controls_.split(text)) {
    if (part.control) {
      hidden += fmt::format("{}{:08}", word_, typed_.size());
      typed_.emplace_back(part.text);
    } else {
      hidden += part.text;
    }
  }
  return hidden;
}

std::string StandIns::hide_json(const std::string& json) {
  if (json.find('\\') == json.npos) return hide(json);
  const common_json parsed = common_json::parse_no_throw(json);
  if (parsed.is_discarded()) return hide(json);
  const std::string plain = parsed.dump();
  return controls_.occurs_in(plain) ? hide(plain) : hide(json);
}

std::vector<TextPart> StandIns::reveal(std::string_view prompt) const {
  std::vector<TextPart> parts;
  const std::size_t size = word_.size() + 8;
  while (!word_.empty()) {
    const std::size_t at = prompt.find(word_);
    if (at == prompt.npos || prompt.size() - at < size) break;
    const std::size_t index =
        std::strtoul(std::string(prompt.substr(at + word_.size(), 8)).c_str(), nullptr, 10);
    parts.push_back({prompt.substr(0, at), false});
    if (index < typed_.size()) parts.push_back({typed_[index], true});
    prompt.remove_prefix(at + size);
  }
  parts.push_back({prompt, false});
  return parts;
}

}  // namespace flotilla::engine
