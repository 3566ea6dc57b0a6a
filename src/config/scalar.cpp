#include "config/scalar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "api/json_text.h"

namespace flotilla::config {
namespace {

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 3> kTrue = {"true", "True", "TRUE"};
constexpr std::array<std::string_view, 3> kFalse = {"false", "False", "FALSE"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end;
}

// JSON's: 010 is eight to some and ten to others, so it is a text, and a text is no number.
bool is_number(std::string_view word) {
  std::size_t at = word.starts_with('-') ? 1 : 0;
  const std::size_t whole = digits(word, at);
  if (whole == at || (word[at] == '0' && whole > at + 1)) return false;
  at = whole;
  if (at < word.size() && word[at] == '.') {
    const std::size_t fraction = digits(word, at + 1);
    if (fraction == at + 1) return false;
    at = fraction;
  }
  if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
    ++at;
    if (at < word.size() && (word[at] == '+' || word[at] == '-')) ++at;
    const std::size_t exponent = digits(word, at);
    if (exponent == at) return false;
    at = exponent;
  }
  return at == word.size();
}

// Words that some reader of YAML takes for something else.
bool is_special_word(std::string_view word) {
  std::string low(word);
  std::ranges::transform(low, low.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 9> words = {"yes", "no",   "on",    "off", "y",
                                                     "n",   "true", "false", "null"};
  return is_one_of(low, words);
}

bool is_plain_text(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && (letter(text[0]) || text[0] == '/' || text[0] == '_') &&
         std::ranges::all_of(text,
                             [&](char c) {
                               return letter(c) || is_digit(c) ||
                                      std::string_view("._/+-").find(c) != text.npos;
                             }) &&
         !is_special_word(text);
}

}  // namespace

Node plain_scalar(std::string_view word) {
  Node node;
  if (is_one_of(word, kNull)) return node;
  node.kind = Node::Kind::Text;
  node.text = std::string(word);
  if (is_one_of(word, kTrue) || is_one_of(word, kFalse)) {
    node.kind = Node::Kind::Bool;
    node.text = is_one_of(word, kTrue) ? "true" : "false";
  } else if (is_number(word)) {
    node.kind = Node::Kind::Number;
  }
  return node;
}

std::string scalar_text(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null: return "null";
    case Node::Kind::Bool:
    case Node::Kind::Number: return node.text;
    case Node::Kind::List: return "[]";
    case Node::Kind::Map: return "{}";
    case Node::Kind::Text: break;
  }
  return is_plain_text(node.text) ? node.text : api::json_string(node.text);
}

std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\0' ? 0 : character_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace flotilla::config
