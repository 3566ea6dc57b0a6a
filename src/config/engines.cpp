#include "config/engines.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/engine_request.h"
#include "api/json_text.h"
#include "base/nearest.h"

namespace flotilla::config {
namespace {

constexpr std::size_t kWordsMax = 200;
constexpr std::string_view kKeys[] = {"program",    "command",  "cwd",  "env",
                                      "body_model", "health",   "base", "model",
                                      "seed",       "prefixes", "lacks"};

std::unexpected<Error> wrong(const Node& at, std::string_view where, std::string_view what) {
  return fail(Code::InvalidArgument, fmt::format("{} (line {}) {}", where, at.at.line, what));
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 41 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool is_variable(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// A program is a name that the agent looks for in its PATH, or an absolute path: what a relative
// one would begin at is another place on each machine.
bool is_program(std::string_view text) {
  return !text.empty() && (text.front() == '/' || text.find('/') == text.npos) &&
         text.front() != '~' && text.front() != '-' && text.front() != '{' &&
         !api::has_control_characters(text);
}

// What a request's first line can hold.
bool is_target(std::string_view text) {
  return text.starts_with('/') &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

class EngineReader {
 public:
  EngineReader(std::string where, api::EngineTemplate begin)
      : where_(std::move(where)), out_(std::move(begin)) {}

  Result<api::EngineTemplate> read(const Node& node) {
    if (node.kind != Node::Kind::Null && !node.is_map())
      return wrong(node, where_,
                   fmt::format("is {}; it takes a map, NAME: VALUE a line", shown(node)));
    // The program's place is in the command, wherever that stands.
    if (const Node* command = node.is_map() ? node.find("command") : nullptr)
      if (auto taken = take(*command); !taken) return fail(taken.error());
    for (const Node& member : node.items) {
      if (member.key == "command") continue;
      if (auto taken = take(member); !taken) return fail(taken.error());
    }
    if (out_.command.empty()) {
      return wrong(node, where_,
                   "has no command; it takes a list: the program and its words, like "
                   "[/opt/engine, --port, \"{port}\"]");
    }
    return std::move(out_);
  }

 private:
  Result<void> take(const Node& member) {
    const std::string place = where_ + "." + member.key;
    if (member.key == "command") return take_command(member, place);
    if (member.key == "env") return take_env(member, place);
    if (member.key == "lacks") return take_lacks(member, place);
    if (member.key == "body_model") return take_body_model(member, place);
    if (member.key == "model")
      return take_choice(member, place, "path", "name", out_.model_by_name);
    if (member.key == "seed") return take_choice(member, place, "client", "never", out_.drops_seed);
    if (member.key == "prefixes")
      return take_choice(member, place, "shared", "salted", out_.salts_cache);
    if (member.key == "program") return take_program(member, place);
    if (member.key == "cwd") return take_cwd(member, place);
    if (member.key == "health") return take_target(member, place, out_.health);
    if (member.key == "base") {
      if (member.kind != Node::Kind::Text || !member.text.empty())
        return take_target(member, place, out_.base_path);
      out_.base_path.clear();
      return {};
    }
    return wrong(member, place,
                 fmt::format("is no part of an engine;{} there are {}",
                             did_you_mean(member.key, kKeys), fmt::join(kKeys, ", ")));
  }

  static Result<void> take_text(const Node& member, const std::string& place, std::string& into) {
    if (member.kind != Node::Kind::Text)
      return wrong(member, place, fmt::format("is {}; it takes a text", shown(member)));
    into = member.text;
    return {};
  }

  Result<void> take_body_model(const Node& member, const std::string& place) {
    if (auto read = take_text(member, place, out_.body_model); !read) return read;
    if (!api::has_control_characters(out_.body_model)) return {};
    return wrong(member, place, "has control characters; a model's name has none");
  }

  Result<void> take_cwd(const Node& member, const std::string& place) {
    if (auto read = take_text(member, place, out_.cwd); !read) return read;
    if (!out_.cwd.starts_with('/'))
      return wrong(member, place, fmt::format("is {}; it begins with /", shown(member)));
    if (!api::has_control_characters(out_.cwd)) return {};
    return wrong(member, place, "has control characters; a folder's path has none");
  }

  static Result<void> take_target(const Node& member, const std::string& place, std::string& into) {
    if (auto read = take_text(member, place, into); !read) return read;
    if (!into.starts_with('/'))
      return wrong(member, place, fmt::format("is {}; it begins with /", shown(member)));
    if (is_target(into)) return {};
    return wrong(
        member, place,
        "has a space, a control character or one that is not ASCII; it is percent-encoded, "
        "as a URL's path");
  }

  Result<void> take_program(const Node& member, const std::string& place) {
    if (member.kind != Node::Kind::Text || !is_program(member.text))
      return wrong(
          member, place,
          fmt::format("is {}; it takes a name in PATH or an absolute path", shown(member)));
    if (out_.command.empty()) out_.command.emplace_back().emplace_back();
    out_.command.front().front() = member.text;
    return {};
  }

  Result<void> take_command(const Node& member, const std::string& place) {
    if (!member.is_list() || member.items.empty() || member.items.size() > kWordsMax)
      return wrong(
          member, place,
          fmt::format("is {}; it takes a list of words, the program first", shown(member)));
    out_.command.clear();
    for (const Node& item : member.items) {
      auto& part = out_.command.emplace_back();
      const auto words = item.is_list() ? std::span(item.items) : std::span(&item, 1);
      for (const Node& word : words) {
        if (word.kind != Node::Kind::Text && word.kind != Node::Kind::Number)
          return wrong(word, place,
                       fmt::format("has {}; its words are texts, or lists of words that "
                                   "belong together",
                                   shown(word)));
        part.push_back(word.text);
      }
      if (part.empty()) return wrong(item, place, "has an empty list");
    }
    if (!is_program(out_.command.front().front()))
      return wrong(member, place,
                   fmt::format("begins with {}; its program is a name in PATH or an absolute path",
                               api::json_string(out_.command.front().front())));
    return {};
  }

  Result<void> take_env(const Node& member, const std::string& place) {
    if (!member.is_map()) return wrong(member, place, "takes a map, NAME: VALUE a line");
    for (const Node& variable : member.items) {
      if (!is_variable(variable.key))
        return wrong(variable, place,
                     fmt::format("has {}; a variable's name is A-Z, 0-9 and _",
                                 api::json_string(variable.key)));
      if (variable.is_list() || variable.is_map() || variable.kind == Node::Kind::Null)
        return wrong(variable, place + "." + variable.key, "takes a text");
      out_.env[variable.key] = variable.text;
    }
    return {};
  }

  Result<void> take_lacks(const Node& member, const std::string& place) {
    const auto& known = api::refusable_fields();
    if (!member.is_list()) return wrong(member, place, "takes a list of a request's fields");
    out_.lacks.clear();
    for (const Node& field : member.items) {
      if (std::ranges::find(known, field.text) == known.end())
        return wrong(field, place,
                     fmt::format("has {};{} it takes {}", shown(field),
                                 did_you_mean(field.text, known), fmt::join(known, ", ")));
      out_.lacks.push_back(field.text);
    }
    return {};
  }

  static Result<void> take_choice(const Node& member, const std::string& place,
                                  std::string_view off, std::string_view on, bool& into) {
    if (member.text != off && member.text != on)
      return wrong(member, place,
                   fmt::format("is {}; it takes one of {}, {}", shown(member), off, on));
    into = member.text == on;
    return {};
  }

  std::string where_;
  api::EngineTemplate out_;
};

}  // namespace

Result<std::vector<api::EngineTemplate>> read_engines(const Node& engines) {
  std::vector<api::EngineTemplate> out;
  if (engines.kind == Node::Kind::Null) return out;
  if (!engines.is_map()) return wrong(engines, "engines", "takes a map, NAME: {…} a line");
  for (const Node& entry : engines.items) {
    if (!is_name(entry.key))
      return wrong(entry, "engines",
                   fmt::format("has the name {}; it takes a-z, 0-9, - and _",
                               api::json_string(std::string_view(entry.key).substr(0, 100))));
    const api::EngineTemplate* shipped = api::find_engine(api::shipped_engines(), entry.key);
    api::EngineTemplate begin = shipped == nullptr ? api::EngineTemplate{} : *shipped;
    begin.name = entry.key;
    auto read = EngineReader("engines." + entry.key, std::move(begin)).read(entry);
    if (!read) return fail(read.error());
    out.push_back(std::move(*read));
  }
  return out;
}

std::string engines_schema() {
  std::string fields;
  for (const std::string_view field : api::refusable_fields())
    fields += (fields.empty() ? "" : ", ") + api::json_string(field);
  return R"x("type": ["object", "null"], "propertyNames": {"pattern": "^[a-z0-9_-]{1,41}$"}, )x"
         R"x("additionalProperties": {"type": ["object", "null"], "additionalProperties": false, "properties": {)x"
         R"x("program": {"type": "string", "description": "Instead of the command's first word: a name in PATH or an absolute path"}, )x"
         R"x("command": {"type": "array", "items": {"anyOf": [{"type": ["string", "number"]}, {"type": "array", "items": {"type": ["string", "number"]}}]}}, )x"
         R"x("cwd": {"type": "string", "pattern": "^/[^\\u0000-\\u001f\\u007f]*$"}, )x"
         R"x("env": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}, )x"
         R"x("body_model": {"type": "string"}, )x"
         R"x("health": {"type": "string", "pattern": "^/[!-~]*$"}, )x"
         R"x("base": {"type": "string", "pattern": "^(/[!-~]*)?$"}, )x"
         R"x("model": {"enum": ["path", "name"]}, )x"
         R"x("seed": {"enum": ["client", "never"]}, )x"
         R"x("prefixes": {"enum": ["shared", "salted"]}, )x"
         R"x("lacks": {"type": "array", "items": {"enum": [)x" +
         fields + "]}}}}";
}

}  // namespace flotilla::config
