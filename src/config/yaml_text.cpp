#include <utility>

#include "api/json_text.h"
#include "config/scalar.h"

// Trees as text again.
namespace flotilla::config {
namespace {

constexpr std::size_t kShownMax = 80;

std::string key_text(const std::string& key) {
  return scalar_text({.kind = Node::Kind::Text, .text = key});
}

// `lead`: what stands before the first line: the indentation, or a list's dash after it.
void write_block(std::string& out, const Node& node, std::string lead, int indent) {
  const std::string next(static_cast<std::size_t>(indent), ' ');
  for (const Node& item : node.items) {
    out += lead;
    lead = next;
    const bool nested = !item.items.empty();
    if (node.is_list()) {
      if (nested) {
        write_block(out, item, "- ", indent + 2);
      } else {
        out += "- " + scalar_text(item) + "\n";
      }
      continue;
    }
    out += key_text(item.key) + ":";
    if (nested) {
      out += '\n';
      const int deeper = indent + 2;
      write_block(out, item, std::string(static_cast<std::size_t>(deeper), ' '), deeper);
    } else {
      out += " " + scalar_text(item) + "\n";
    }
  }
}

void write_json(std::string& out, const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null: out += "null"; return;
    case Node::Kind::Bool:
    case Node::Kind::Number: out += node.text; return;
    case Node::Kind::Text: append_quoted(out, node.text); return;
    case Node::Kind::List:
    case Node::Kind::Map: break;
  }
  out += node.is_map() ? '{' : '[';
  bool first = true;
  for (const Node& item : node.items) {
    if (!std::exchange(first, false)) out += ',';
    if (node.is_map()) {
      append_quoted(out, item.key);
      out += ':';
    }
    write_json(out, item);
  }
  out += node.is_map() ? '}' : ']';
}

}  // namespace

std::string shown(const Node& node) {
  if (node.is_map()) return node.items.empty() ? "an empty map" : "a map";
  if (node.is_list()) return node.items.empty() ? "an empty list" : "a list";
  if (node.kind == Node::Kind::Null) return "without a value";
  std::string text = node.kind == Node::Kind::Text ? api::json_string(node.text) : node.text;
  if (text.size() <= kShownMax) return text;
  std::size_t cut = kShownMax;  // not inside a character
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return text.substr(0, cut) + "…";
}

std::string to_yaml(const Node& node) {
  std::string out;
  if (node.items.empty()) return scalar_text(node) + "\n";
  write_block(out, node, "", 0);
  return out;
}

std::string to_json(const Node& node) {
  std::string out;
  write_json(out, node);
  return out;
}

}  // namespace flotilla::config
