#include "config/spec_tree.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/numbers.h"
#include "config/setting.h"

namespace flotilla::config {
namespace {

// Numbers as people write them: 2, not 2E0.
void make_plain(Node& node) {
  if (node.kind == Node::Kind::Number)
    if (const auto number = parse_double(node.text)) node.text = shown(Value(*number));
  for (Node& item : node.items) make_plain(item);
}

Node tree_of_json(const std::string& json) {
  // JSON that we wrote is YAML, however much it is.
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
  auto tree = parse_yaml(json, "json", {.bytes_max = any, .values_max = any});
  CHECK(tree.has_value());
  make_plain(*tree);
  return std::move(*tree);
}

bool same(const Node& a, const Node& b) { return to_json(a) == to_json(b); }

// Members that are as in `standard` go, unless they are named.
void drop_standard(Node& map, const Node& standard, std::initializer_list<std::string_view> kept) {
  std::erase_if(map.items, [&](const Node& member) {
    if (std::ranges::find(kept, member.key) != kept.end()) return false;
    const Node* other = standard.find(member.key);
    return other != nullptr && same(member, *other);
  });
}

Node* find_member(Node& map, std::string_view key) {
  const auto found = std::ranges::find(map.items, key, &Node::key);
  return found == map.items.end() ? nullptr : &*found;
}

std::string_view id_of(const Node& item) {
  const Node* id = item.find("id");
  return id == nullptr ? std::string_view() : std::string_view(id->text);
}

bool has_ids(const Node& list) {
  return list.is_list() && !list.items.empty() &&
         std::ranges::none_of(list.items, [](const Node& item) { return id_of(item).empty(); });
}

std::string brief(const Node* node) {
  if (node == nullptr) return "unset";
  if (node->is_list() || node->is_map()) {
    const std::string json = to_json(*node);
    if (json.size() <= 80) return json;
  }
  return shown(*node);
}

class Comparison {
 public:
  void compare(const std::string& path, const Node* before, const Node* after) {
    if (before != nullptr && after != nullptr) {
      if (same(*before, *after)) return;
      if (before->is_map() && after->is_map()) return compare_maps(path, *before, *after);
      if (has_ids(*before) && has_ids(*after)) return compare_lists(path, *before, *after);
    }
    say(fmt::format("{}: {} -> {}", path, brief(before), brief(after)));
  }
  std::string take() { return std::move(words_); }

 private:
  void say(std::string_view what) {
    words_ += fmt::format("{}{}", words_.empty() ? "" : ", ", what);
  }

  void compare_maps(const std::string& path, const Node& before, const Node& after) {
    const auto below = [&](const std::string& key) {
      return path.empty() ? key : path + "." + key;
    };
    for (const Node& member : after.items)
      compare(below(member.key), before.find(member.key), &member);
    for (const Node& member : before.items)
      if (after.find(member.key) == nullptr) compare(below(member.key), &member, nullptr);
  }

  void compare_lists(const std::string& path, const Node& before, const Node& after) {
    const std::size_t said = words_.size();
    for (const Node& item : after.items) {
      const auto old = std::ranges::find(before.items, id_of(item), id_of);
      const std::string name = fmt::format("{}.{}", path, id_of(item));
      if (old == before.items.end()) {
        say(name + " comes");
      } else {
        compare(name, &*old, &item);
      }
    }
    for (const Node& item : before.items)
      if (std::ranges::find(after.items, id_of(item), id_of) == after.items.end())
        say(fmt::format("{}.{} goes", path, id_of(item)));
    if (words_.size() == said) say(path + ": another order");
  }

  std::string words_;
};

}  // namespace

Node tree_of(const api::ClusterSpec& cluster) {
  api::ClusterSpec standard;
  standard.id = standard.label = cluster.id;
  for (const api::NodeSpec& node : cluster.nodes) {
    api::NodeSpec& other = standard.nodes.emplace_back();
    other.id = other.label = node.id;
  }
  Node tree = tree_of_json(api::to_json(cluster, api::Secrets::Hidden));
  const Node plain = tree_of_json(api::to_json(standard, api::Secrets::Hidden));
  Node& nodes = *find_member(tree, "nodes");
  for (std::size_t i = 0; i < nodes.items.size(); ++i)
    drop_standard(nodes.items[i], plain.find("nodes")->items[i], {"id"});
  drop_standard(tree, plain, {"id", "nodes"});
  return tree;
}

Node tree_of(const api::DeclaredPool& pool) {
  Node tree = tree_of_json(api::to_json(pool.load));
  drop_standard(tree, tree_of_json(api::to_json(api::LoadSpec{})), {"model", "alias", "batch"});
  tree = without(std::move(tree), {"wait"});
  Node cluster{.kind = Node::Kind::Text, .text = pool.cluster, .key = "cluster"};
  tree.items.insert(tree.items.begin(), std::move(cluster));
  return tree;
}

Node tree_of(const api::KeySpec& key) {
  Node tree = tree_of_json(api::to_json(key));
  drop_standard(tree, tree_of_json(api::to_json(api::KeySpec{})), {"name"});
  return tree;
}

Node without(Node map, std::initializer_list<std::string_view> keys) {
  std::erase_if(map.items, [&](const Node& member) {
    return std::ranges::find(keys, member.key) != keys.end();
  });
  return map;
}

std::string differences(const Node& before, const Node& after) {
  Comparison comparison;
  comparison.compare("", &before, &after);
  return comparison.take();
}

}  // namespace flotilla::config
