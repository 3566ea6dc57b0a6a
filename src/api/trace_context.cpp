#include "api/trace_context.h"

#include <algorithm>

#include <fmt/format.h>

namespace flotilla::api {
namespace {

// VERSION-TRACE-PARENT-FLAGS: 2, 32, 16 and 2 hex digits.
constexpr std::size_t kTrace = 3;
constexpr std::size_t kTraceLength = 32;
constexpr std::size_t kParent = 36;
constexpr std::size_t kParentLength = 16;
constexpr std::size_t kFlags = 53;
constexpr std::size_t kLength = 55;
constexpr std::size_t kStateMax = 512;
constexpr std::size_t kMembersMax = 32;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return digit(c) >= 0; });
}

bool is_zero(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c == '0'; });
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// A later version may go on after a dash; what follows is not ours to understand.
bool is_traceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[kParent - 1] != '-' ||
      text[kFlags - 1] != '-')
    return false;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(kTrace, kTraceLength);
  const std::string_view parent = text.substr(kParent, kParentLength);
  if (!is_hex(version) || version == "ff" || !is_hex(trace) || !is_hex(parent) ||
      !is_hex(text.substr(kFlags, 2)))
    return false;
  if (is_zero(trace) || is_zero(parent)) return false;
  return text.size() == kLength || (version != "00" && text[kLength] == '-');
}

// Of the flags only those that are defined go on: sampled, and random trace id.
std::string as_version_00(std::string_view text) {
  const int flags = digit(text[kFlags + 1]) & 0x3;
  return fmt::format("00-{}-{}-{:02x}", text.substr(kTrace, kTraceLength),
                     text.substr(kParent, kParentLength), flags);
}

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("_-*/@").find(c) != std::string_view::npos;
}

bool is_member(std::string_view member) {
  const auto equals = member.find('=');
  if (equals == 0 || equals > 256) return false;  // npos too
  const std::string_view value = member.substr(equals + 1);
  return std::ranges::all_of(member.substr(0, equals), is_key_character) && !value.empty() &&
         std::ranges::all_of(value, [](char c) { return c >= 0x20 && c <= 0x7E && c != '='; });
}

// All headers' members in one list.
std::string joined(const std::vector<std::string_view>& headers) {
  std::string out;
  std::size_t members = 0;
  for (std::string_view header : headers) {
    while (!header.empty()) {
      const auto comma = std::min(header.find(','), header.size());
      const std::string_view member = trimmed(header.substr(0, comma));
      header.remove_prefix(std::min(comma + 1, header.size()));
      if (member.empty()) continue;
      if (!is_member(member) || ++members > kMembersMax) return {};
      if (!out.empty()) out += ',';
      out += member;
    }
  }
  return out.size() <= kStateMax ? out : std::string();
}

}  // namespace

std::string_view TraceContext::trace_id() const {
  return empty() ? std::string_view() : std::string_view(traceparent).substr(kTrace, kTraceLength);
}

TraceContext read_trace_context(const std::vector<std::string_view>& traceparents,
                                const std::vector<std::string_view>& tracestates) {
  TraceContext out;
  if (traceparents.size() != 1) return out;
  const std::string_view text = trimmed(traceparents.front());
  if (!is_traceparent(text)) return out;
  out.traceparent = as_version_00(text);
  out.tracestate = joined(tracestates);
  return out;
}

}  // namespace flotilla::api
