#include "config/wanted.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/numbers.h"
#include "config/spec_tree.h"
#include "model/alias.h"

namespace flotilla::config {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kSections = {"clusters", "pools", "keys", "settings"};

// Where "nodes[1].port" stands; as far as it is there.
Mark place_of(const Node& root, std::string_view path) {
  const Node* node = &root;
  Mark at = root.at;
  while (!path.empty()) {
    const auto end = std::min(path.find_first_of(".[", 1), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end + (path.substr(end).starts_with('.') ? 1 : 0));
    if (part.starts_with('[')) {
      std::size_t index = 0;
      std::from_chars(part.data() + 1, part.data() + part.size(), index);
      if (index >= node->items.size()) return at;
      node = &node->items[index];
      at = node->at;
      continue;
    }
    node = node->find(part);
    if (node == nullptr) return at;
    at = node->key_at;
  }
  return at;
}

class WantedReader {
 public:
  WantedReader(const fs::path& file, const Environment& environment)
      : file_(file), environment_(environment), problems_(file.string()) {}

  Result<Wanted> read(const Node& root) {
    if (root.is_map()) {
      for (const Node& section : root.items) read_section(section);
    } else {
      problems_.add(root.at, fmt::format("the file is {}; it takes a map with clusters, pools, "
                                         "keys and settings",
                                         shown(root)));
    }
    if (!problems_.empty()) return problems_.unexpected();
    return std::move(wanted_);
  }

 private:
  void read_section(const Node& section) {
    if (section.key == "clusters") {
      wanted_.clusters.emplace();
      read_list(section, [this](const Node& item) { read_cluster(item); });
    } else if (section.key == "pools") {
      wanted_.pools.emplace();
      read_list(section, [this](const Node& item) { read_pool(item); });
    } else if (section.key == "keys") {
      wanted_.keys.emplace();
      read_list(section, [this](const Node& item) { read_key(item); });
    } else if (section.key == "settings") {
      wanted_.settings.emplace();
      read_settings(section);
    } else {
      problems_.add(section.key_at,
                    fmt::format("there is no section \"{}\";{} there are clusters, pools, keys and "
                                "settings",
                                section.key, did_you_mean(section.key, kSections)));
    }
  }

  template <class Read>
  void read_list(const Node& section, Read read) {
    if (section.kind == Node::Kind::Null) return;
    if (!section.is_list()) {
      problems_.add(section.at,
                    fmt::format("{} is {}; it takes a list", section.key, shown(section)));
      return;
    }
    for (const Node& item : section.items) {
      if (item.is_map()) {
        read(item);
      } else {
        problems_.add(item.at, fmt::format("{} has {}; it takes maps", section.key, shown(item)));
      }
    }
  }

  void refuse(const Node& item, const Error& error) {
    problems_.add(place_of(item, error.param), error.message);
  }

  void note_name(std::string_view kind, const std::string& name, Mark at) {
    if (!names_.insert(fmt::format("{} {}", kind, name)).second)
      problems_.add(at, fmt::format("{} \"{}\" is there twice", kind, name));
  }

  void read_cluster(const Node& item) {
    Node body = item;
    for (Node& member : body.items) {
      if (member.key != "nodes" || !member.is_list()) continue;
      for (Node& node : member.items)
        if (!fill_in_key(node)) return;
    }
    const Node* id = item.find("id");
    if (id == nullptr || id->kind != Node::Kind::Text) {
      problems_.add(item.at, "id is missing; it takes a text, the cluster's id");
      return;
    }
    auto cluster = api::parse_cluster(to_json(body), id->text);
    if (!cluster) return refuse(item, cluster.error());
    note_name("cluster", cluster->id, id->at);
    wanted_.clusters->push_back(std::move(*cluster));
  }

  // api_key_env and api_key_file become api_key. False: something is wrong.
  bool fill_in_key(Node& node) {
    std::optional<std::string> key;
    for (const Node& member : std::vector(node.items)) {
      if (member.key == "api_key") {
        problems_.add(member.key_at,
                      "api_key: a key does not belong in this file; say api_key_env: VARIABLE or "
                      "api_key_file: FILE");
        return false;
      }
      const bool is_variable = member.key == "api_key_env";
      if (!is_variable && member.key != "api_key_file") continue;
      if (member.kind != Node::Kind::Text || member.text.empty()) {
        problems_.add(member.at, fmt::format("{} is {}; it takes {}", member.key, shown(member),
                                             is_variable ? "a variable's name" : "a path"));
        return false;
      }
      key = is_variable ? key_of_variable(member) : key_of_file(member);
      if (!key) return false;
    }
    node = without(std::move(node), {"api_key_env", "api_key_file"});
    if (key)
      node.items.push_back(
          {.kind = Node::Kind::Text, .at = node.at, .text = *key, .key = "api_key"});
    return true;
  }

  std::optional<std::string> key_of_variable(const Node& member) {
    const char* value = environment_ ? environment_(member.text.c_str()) : nullptr;
    if (value != nullptr && *value != '\0') return value;
    problems_.add(member.at, fmt::format("api_key_env: the variable {} is not set", member.text));
    return std::nullopt;
  }

  std::optional<std::string> key_of_file(const Node& member) {
    const fs::path path = file_.parent_path() / member.text;
    auto text = read_file(path);
    if (text) {
      text->resize(std::min(text->find_first_of("\r\n"), text->size()));
      if (!text->empty()) return std::move(*text);
    }
    problems_.add(member.at, fmt::format("api_key_file: no key can be read in {}", path.string()));
    return std::nullopt;
  }

  void read_pool(const Node& item) {
    const Node* cluster = item.find("cluster");
    if (cluster == nullptr || cluster->kind != Node::Kind::Text) {
      problems_.add(item.at, "cluster is missing; it takes the id of the pool's cluster");
      return;
    }
    if (const Node* wait = item.find("wait")) {
      problems_.add(wait->key_at, "wait does not belong in a file; apply has --no-wait");
      return;
    }
    auto load = api::parse_load(to_json(without(item, {"cluster"})));
    if (!load) return refuse(item, load.error());
    if (load->alias.empty()) load->alias = model::default_alias(load->model);
    std::vector<std::string> names = load->aliases;
    names.push_back(load->alias);
    for (const std::string& name : names) {
      if (auto valid = model::check_alias(name); !valid)
        return problems_.add(item.at, valid.error().message);
      note_name("alias", name, item.at);
    }
    wanted_.pools->push_back({.cluster = cluster->text, .load = std::move(*load)});
  }

  void read_key(const Node& item) {
    auto key = api::parse_key_spec(to_json(item));
    if (!key) return refuse(item, key.error());
    note_name("key", key->name, item.at);
    wanted_.keys->push_back(std::move(*key));
  }

  void read_settings(const Node& section) {
    if (section.kind == Node::Kind::Null) return;
    if (!section.is_map()) {
      problems_.add(section.at, fmt::format("settings is {}; it takes a map, NAME: NUMBER a line",
                                            shown(section)));
      return;
    }
    for (const Node& member : section.items) {
      const auto value =
          member.kind == Node::Kind::Number ? parse_double(member.text) : std::optional<double>();
      if (!value) {
        problems_.add(member.at,
                      fmt::format("{} is {}; it takes a number", member.key, shown(member)));
        continue;
      }
      (*wanted_.settings)[member.key] = {
          .value = *value,
          .where =
              fmt::format("{}:{}:{}", file_.string(), member.key_at.line, member.key_at.column)};
    }
  }

  const fs::path file_;
  const Environment& environment_;
  Problems problems_;
  Wanted wanted_;
  std::set<std::string> names_;
};

Node list_named(std::string key) { return {.kind = Node::Kind::List, .key = std::move(key)}; }

}  // namespace

Result<Wanted> read_wanted(std::string_view text, const fs::path& file,
                           const Environment& environment) {
  const auto root = parse_yaml(text, file.string(), kFleetLimits);
  if (!root) return fail(root.error());
  return WantedReader(file, environment).read(*root);
}

std::string export_text(const api::Declared& declared, const std::vector<api::KeyShown>& keys,
                        const std::vector<api::SettingShown>& settings) {
  std::string head =
      "# What a server has declared, for `flotilla apply -f FILE`. Secrets are not in here: apply\n"
      "# makes new ones for the keys and shows them once; the key of an http node comes from\n"
      "# api_key_env: VARIABLE or api_key_file: FILE beside its url.\n";
  for (const auto& [node, fingerprint] : declared.api_key_fingerprints)
    head += fmt::format("# Node {} has such a key.\n", node);
  Node root{.kind = Node::Kind::Map};
  Node clusters = list_named("clusters");
  for (const api::ClusterSpec& cluster : declared.clusters)
    clusters.items.push_back(tree_of(cluster));
  Node pools = list_named("pools");
  for (const api::DeclaredPool& pool : declared.pools) pools.items.push_back(tree_of(pool));
  std::ranges::sort(pools.items, {}, [](const Node& pool) { return pool.find("alias")->text; });
  Node named = list_named("keys");
  for (const api::KeyShown& key : keys) named.items.push_back(tree_of(key.spec));
  std::ranges::sort(named.items, {}, [](const Node& key) { return key.find("name")->text; });
  Node stored{.kind = Node::Kind::Map, .key = "settings"};
  for (const api::SettingShown& setting : settings) {
    if (setting.source != "stored") continue;
    stored.items.push_back(
        {.kind = Node::Kind::Number, .text = shown(Value(setting.value)), .key = setting.name});
  }
  root.items = {std::move(clusters), std::move(pools), std::move(named), std::move(stored)};
  return head + to_yaml(root);
}

}  // namespace flotilla::config
