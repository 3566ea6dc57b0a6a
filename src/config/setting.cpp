#include "config/setting.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/json_text.h"
#include "base/numbers.h"

namespace flotilla::config {
namespace {

std::string number_text(double value) {
  constexpr double exact = 1LL << 53;
  if (value == std::trunc(value) && std::abs(value) < exact)
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

std::unexpected<Error> refused(const Setting& setting, std::string_view shown_value) {
  return fail(Error{.code = Code::InvalidArgument,
                    .message = fmt::format("{}; it takes {}", shown_value, setting.takes()),
                    .param = setting.name()});
}

bool fits(const Setting& setting, double value) {
  return value >= setting.min && value <= setting.max &&
         (!setting.whole || value == std::trunc(value));
}

bool fits(const Setting& setting, const std::string& text) {
  return setting.choices.empty() ||
         std::ranges::find(setting.choices, text) != setting.choices.end();
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (comma != 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

struct FromText {
  const Setting& setting;
  std::string_view text;

  Result<Value> operator()(bool) const {
    if (text == "true" || text == "1") return Value(true);
    if (text == "false" || text == "0") return Value(false);
    return refuse();
  }
  Result<Value> operator()(double) const {
    const auto number = parse_double(text);
    if (!number || !fits(setting, *number)) return refuse();
    return Value(*number);
  }
  Result<Value> operator()(const std::string&) const {
    std::string value(text);
    if (!fits(setting, value)) return refuse();
    return Value(std::move(value));
  }
  Result<Value> operator()(const std::filesystem::path&) const {
    return Value(std::filesystem::path(text));
  }
  Result<Value> operator()(const std::vector<std::string>&) const { return Value(parts_of(text)); }
  Result<Value> operator()(const Node&) const { return refuse(); }

  std::unexpected<Error> refuse() const { return refused(setting, fmt::format("\"{}\"", text)); }
};

struct FromNode {
  const Setting& setting;
  const Node& node;

  Result<Value> operator()(bool) const {
    if (node.kind != Node::Kind::Bool) return refuse();
    return Value(node.text == "true");
  }
  Result<Value> operator()(double) const {
    const auto number =
        node.kind == Node::Kind::Number ? parse_double(node.text) : std::optional<double>();
    if (!number || !fits(setting, *number)) return refuse();
    return Value(*number);
  }
  Result<Value> operator()(const std::string&) const {
    if (node.kind != Node::Kind::Text || !fits(setting, node.text)) return refuse();
    return Value(node.text);
  }
  Result<Value> operator()(const std::filesystem::path&) const {
    if (node.kind != Node::Kind::Text || node.text.starts_with('~')) return refuse();
    return Value(std::filesystem::path(node.text));
  }
  Result<Value> operator()(const std::vector<std::string>&) const {
    if (!node.is_list()) return refuse();
    std::vector<std::string> parts;
    for (const Node& item : node.items) {
      if (item.kind != Node::Kind::Text) return refused(setting, "a list with " + shown(item));
      parts.push_back(item.text);
    }
    return Value(std::move(parts));
  }
  Result<Value> operator()(const Node&) const {
    if (auto checked = setting.check(node); !checked) return fail(checked.error());
    return Value(node);
  }

  std::unexpected<Error> refuse() const { return refused(setting, shown(node)); }
};

}  // namespace

std::string Setting::name() const { return section.empty() ? key : section + "." + key; }

std::string Setting::takes() const {
  struct Words {
    const Setting& setting;
    std::string operator()(bool) const { return "true or false"; }
    std::string operator()(double) const {
      return fmt::format("a {}number from {} to {}", setting.whole ? "whole " : "",
                         number_text(setting.min), number_text(setting.max));
    }
    std::string operator()(const std::string&) const {
      if (setting.choices.empty()) return "a text (in quotes, if it looks like a number)";
      return fmt::format("one of {}", fmt::join(setting.choices, ", "));
    }
    std::string operator()(const std::filesystem::path&) const {
      return "a path (without ~, which is a shell's)";
    }
    std::string operator()(const std::vector<std::string>&) const { return "a list of texts"; }
    std::string operator()(const Node&) const { return "a map"; }
  };
  return std::visit(Words{*this}, target.standard);
}

Result<Value> read_value(const Setting& setting, std::string_view text) {
  return std::visit(FromText{setting, text}, setting.target.standard);
}

Result<Value> read_value(const Setting& setting, const Node& node) {
  return std::visit(FromNode{setting, node}, setting.target.standard);
}

std::string shown(const Value& value) {
  struct Words {
    std::string operator()(bool on) const { return on ? "true" : "false"; }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const std::filesystem::path& path) const { return path.string(); }
    std::string operator()(const std::vector<std::string>& parts) const {
      return fmt::format("{}", fmt::join(parts, ", "));
    }
    std::string operator()(const Node& tree) const {
      std::string out;
      for (const Node& member : tree.items) out += (out.empty() ? "" : ", ") + member.key;
      return out;
    }
  };
  return std::visit(Words{}, value);
}

std::string to_json(const Value& value) {
  struct Words {
    std::string operator()(bool on) const { return on ? "true" : "false"; }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::string& text) const { return api::json_string(text); }
    std::string operator()(const std::filesystem::path& path) const {
      return api::json_string(path.string());
    }
    std::string operator()(const std::vector<std::string>& parts) const {
      std::string out = "[";
      for (const std::string& part : parts)
        out += (out.size() > 1 ? ", " : "") + api::json_string(part);
      return out + "]";
    }
    std::string operator()(const Node& tree) const { return to_json(tree); }
  };
  return std::visit(Words{}, value);
}

}  // namespace flotilla::config
