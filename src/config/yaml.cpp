#include "config/yaml.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "config/scalar.h"

namespace flotilla::config {
namespace {

Mark mark_of(const YAML::Mark& mark) {
  return mark.is_null() ? Mark{} : Mark{.line = mark.line + 1, .column = mark.column + 1};
}

// Takes yaml-cpp's events and builds our tree. It cannot stop the parser; after the first problem
// it only lets the events pass, of which the limits on bytes and depth allow few.
class Builder : public YAML::EventHandler {
 public:
  Builder(Problems& problems, std::size_t values_max)
      : problems_(problems), values_max_(values_max) {}
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document begins here; a file has one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { place({.at = mark_of(mark)}); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "an alias (*name) is not taken here; write out what it stands for");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    refuse(mark, fmt::format("the anchor &{} is not taken here; write out what it stands for",
                             name.substr(0, 60)));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    if (!check_tag(mark, tag)) return;
    if (value.find('\0') != std::string::npos) return refuse(mark, "a text has a NUL in it");
    Node node = tag == "?" ? plain_scalar(value) : Node{.kind = Node::Kind::Text};
    if (node.kind == Node::Kind::Text) node.text = value;
    node.at = mark_of(mark);
    place(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    if (check_tag(mark, tag)) open(mark, Node::Kind::List);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    if (check_tag(mark, tag)) open(mark, Node::Kind::Map);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map that has not ended.
  struct Open {
    Node node;
    std::optional<Node> key;  // read, and its value not yet
    std::set<std::string, std::less<>> keys;
  };

  void refuse(const YAML::Mark& mark, std::string_view what) { refuse(mark_of(mark), what); }
  void refuse(Mark at, std::string_view what) {
    if (problems_.empty()) problems_.add(at, what);
  }

  // "?" and "!" are yaml-cpp's for a word with and without quotes.
  bool check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return problems_.empty();
    refuse(mark, fmt::format("the tag {} is not taken here", tag.substr(0, 60)));
    return false;
  }

  void open(const YAML::Mark& mark, Node::Kind kind) {
    if (static_cast<int>(open_.size()) >= kDepthMax)
      return refuse(mark, fmt::format("this is deeper than {} levels", kDepthMax));
    Open& opened = open_.emplace_back();
    opened.node.kind = kind;
    opened.node.at = mark_of(mark);
  }

  void close() {
    if (!problems_.empty()) return;
    Node node = std::move(open_.back().node);
    open_.pop_back();
    place(std::move(node));
  }

  void place(Node node) {
    if (!problems_.empty()) return;
    if (++values_ > values_max_)
      return refuse(node.at, fmt::format("a file has at most {} values", values_max_));
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_map() && !parent.key) return take_key(parent, std::move(node));
    if (parent.key) {
      if (node.kind == Node::Kind::Null) node.at = parent.key->at;  // yaml-cpp says: what follows
      node.key = std::move(parent.key->text);
      node.key_at = parent.key->at;
      parent.key.reset();
    }
    parent.node.items.push_back(std::move(node));
  }

  void take_key(Open& map, Node key) {
    if (key.is_list() || key.is_map() || key.kind == Node::Kind::Null)
      return refuse(key.at, fmt::format("{} is no key; a key is a word", shown(key)));
    if (key.text == "<<")
      return refuse(key.at, "a merge key (<<) is not taken here; write out what it stands for");
    if (!map.keys.insert(key.text).second) {
      const Node* first = map.node.find(key.text);
      return refuse(key.at, fmt::format("{} is there twice, first on line {}", shown(key),
                                        first == nullptr ? 0 : first->key_at.line));
    }
    map.key = std::move(key);
  }

  Problems& problems_;
  const std::size_t values_max_;
  std::vector<Open> open_;
  Node root_;
  int documents_ = 0;
  std::size_t values_ = 0;
};

std::string_view line_of(std::string_view text, int line) {
  for (; line > 1; --line) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

Mark mark_at(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const auto line_start = before.rfind('\n');
  return {.line = static_cast<int>(std::ranges::count(before, '\n')) + 1,
          .column = static_cast<int>(
              position - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1)};
}

void explain(Problems& problems, const YAML::Exception& cause, std::string_view text) {
  const Mark at = mark_of(cause.mark);
  const std::string_view line = line_of(text, at.line);
  const auto blanks = line.substr(0, line.find_first_not_of(" \t"));
  problems.add(at, blanks.find('\t') == std::string_view::npos
                       ? fmt::format("this is no YAML: {}", cause.msg)
                       : "the line begins with a tab; YAML indents with spaces");
}

}  // namespace

const Node* Node::find(std::string_view wanted) const {
  const auto found = std::ranges::find(items, wanted, &Node::key);
  return is_map() && found != items.end() ? &*found : nullptr;
}

void Problems::add(Mark at, std::string_view what) {
  lines_.push_back(fmt::format("{}:{}:{}: {}", file_, at.line, at.column, what));
}

std::unexpected<Error> Problems::unexpected() const {
  std::string all;
  for (const std::string& line : lines_) all += (all.empty() ? "" : "\n") + line;
  return fail(Code::InvalidArgument, std::move(all));
}

Result<Node> parse_yaml(std::string_view text, std::string_view file, const Limits& limits) {
  Problems problems(file);
  if (text.size() > limits.bytes_max) {
    problems.add(
        {}, fmt::format("the file has more than the {} bytes that are taken", limits.bytes_max));
    return problems.unexpected();
  }
  if (const auto bad = first_bad_byte(text); bad != std::string_view::npos) {
    problems.add(mark_at(text, bad),
                 text[bad] == '\0' ? "a NUL is not taken" : "this is not UTF-8");
    return problems.unexpected();
  }
  Builder builder(problems, limits.values_max);
  try {
    // yaml-cpp takes a quoted text that never ends if a line does; so the last one does not.
    std::istringstream stream(std::string(text) + "\n#");
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder) && problems.empty()) {
    }
  } catch (const YAML::Exception& cause) {
    if (problems.empty()) explain(problems, cause, text);
  } catch (const std::exception& cause) {
    if (problems.empty()) problems.add({}, fmt::format("this is no YAML: {}", cause.what()));
  }
  if (!problems.empty()) return problems.unexpected();
  return builder.take_root();
}

}  // namespace flotilla::config
