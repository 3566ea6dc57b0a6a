#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

// A setting of a process: one line of a table, from which come the flag, its help, the reader of
// flotilla.yaml, its JSON schema and what `flotilla config show` prints.
namespace flotilla::config {

using Value =
    std::variant<bool, double, std::string, std::filesystem::path, std::vector<std::string>, Node>;

// The variable that a setting is for: its type, its default and where a value goes.
struct Target {
  Value standard;
  std::function<void(const Value&)> assign;
};

template <std::integral Number>
  requires(!std::same_as<Number, bool>)
Target into(Number& member) {
  return {static_cast<double>(member),
          [&member](const Value& value) { member = static_cast<Number>(std::get<double>(value)); }};
}

template <class Member>
  requires std::same_as<Member, bool> || std::same_as<Member, std::string> ||
           std::same_as<Member, std::filesystem::path> ||
           std::same_as<Member, std::vector<std::string>> || std::same_as<Member, Node>
Target into(Member& member) {
  return {member, [&member](const Value& value) { member = std::get<Member>(value); }};
}

struct Setting {
  std::string key;               // in the file
  std::string flag = {};         // "--port"; empty: none
  std::string environment = {};  // a variable's name; empty: none
  std::string about = {};
  Target target = {};
  double min = 0;  // of a number
  double max = 0;
  bool whole = true;
  std::vector<std::string> choices = {};  // of a text; empty: any
  bool varies = false;                    // its default is another one on each machine
  std::string section = {};               // the map in which the key stands; empty: the whole file
  // Of a tree, which only the file can say: whether it is right, and its JSON schema.
  std::function<Result<void>(const Node&)> check = {};
  std::string schema = {};

  std::string name() const;   // "port", "knobs.QUEUE_MAX"
  std::string takes() const;  // "a whole number from 0 to 65535"
};

// As a flag or a variable of the environment says it; a list's parts are separated by commas. The
// error begins with the text: "\"x\"; it takes …".
Result<Value> read_value(const Setting& setting, std::string_view text);
// As the file says it.
Result<Value> read_value(const Setting& setting, const Node& node);

// As a person reads it.
std::string shown(const Value& value);
std::string to_json(const Value& value);

}  // namespace flotilla::config
