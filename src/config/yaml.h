#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// YAML as we take it: one document of maps, lists and plain values, each with its place in the
// file. Anchors, aliases, merge keys, tags, keys that are there twice and more than the limits are
// refused: whoever reads a configuration sees all of it where it stands. Only place of yaml-cpp.
namespace flotilla::config {

inline constexpr std::size_t kFileBytesMax = 1 << 20;
inline constexpr int kDepthMax = 32;

struct Limits {
  std::size_t bytes_max = kFileBytesMax;
  std::size_t values_max = 50'000;
};

struct Mark {
  int line = 1;
  int column = 1;

  bool operator==(const Mark&) const = default;
};

struct Node {
  // A word without quotes is Null, Bool or Number where JSON would read it so (and ~, True, …).
  enum class Kind { Null, Bool, Number, Text, List, Map };
  Kind kind = Kind::Null;
  Mark at = {};
  std::string text = {};         // of a value; a Bool's is true or false
  std::vector<Node> items = {};  // of a list or a map
  std::string key = {};          // of a map's member
  Mark key_at = {};

  bool is_map() const { return kind == Kind::Map; }
  bool is_list() const { return kind == Kind::List; }
  const Node* find(std::string_view key) const;  // of a map
  bool operator==(const Node&) const = default;
};

// What is wrong in a file, as compilers say it: FILE:LINE:COLUMN: what, a line each.
class Problems {
 public:
  explicit Problems(std::string_view file) : file_(file) {}
  void add(Mark at, std::string_view what);
  bool empty() const { return lines_.empty(); }
  // After something was added.
  std::unexpected<Error> unexpected() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

// An empty text is Null. The error has one line.
Result<Node> parse_yaml(std::string_view text, std::string_view file, const Limits& limits = {});

// `node` as it would stand in a message, short.
std::string shown(const Node& node);
// In block style, each value readable again as what it is.
std::string to_yaml(const Node& node);
std::string to_json(const Node& node);

}  // namespace flotilla::config
