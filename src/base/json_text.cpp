#include "base/json_text.h"

#include <array>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

namespace flotilla {
namespace {

// 0: copied as it is; 1: needs a look (control, quote, backslash, or not ASCII).
constexpr std::array<std::uint8_t, 256> make_special() {
  std::array<std::uint8_t, 256> table{};
  for (int c = 0; c < 256; ++c) {
    table[static_cast<std::size_t>(c)] = c < 0x20 || c == '"' || c == '\\' || c >= 0x7F;
  }
  return table;
}
constexpr auto kSpecial = make_special();

void append_escape(std::string& out, unsigned char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  }
}

}  // namespace

// RFC 3629's table.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : 0U;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first < 0xC2U) return 0;
  if (first < 0xE0U) return tail(1) ? 2 : 0;
  if (first < 0xF0U) {
    const unsigned low = first == 0xE0U ? 0xA0U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && tail(2) ? 3 : 0;
  }
  if (first < 0xF5U) {
    const unsigned low = first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xF4U ? 0x8FU : 0xBFU;
    return byte(1) >= low && byte(1) <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  std::size_t copied = 0;  // text[0, copied) is in `out`
  std::size_t at = 0;
  while (at < text.size()) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (kSpecial[c] == 0) {
      ++at;
      continue;
    }
    if (const std::size_t length = c >= 0x80 ? character_length(text, at) : 0; length > 0) {
      at += length;
      continue;
    }
    out.append(text, copied, at - copied);
    if (c >= 0x80) {
      out += "\xEF\xBF\xBD";
    } else {
      append_escape(out, c);
    }
    copied = ++at;
  }
  out.append(text, copied, at - copied);
  out += '"';
}

}  // namespace flotilla
