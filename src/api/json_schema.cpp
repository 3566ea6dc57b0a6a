#include "api/json_schema.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "api/schema_leaves.h"
#include "api/schema_lists.h"
#include "api/schema_words.h"
#include "base/rule_mark.h"

namespace flotilla::api {
namespace {

using namespace schema;

constexpr std::size_t kBytesMax = 64 << 10;
constexpr int kDepthMax = 64;
constexpr int kNodesMax = 2000;
// Properties that may be left out: rules grow with the square of their number.
constexpr int kOptionalMax = 200;

class SchemaWalk {
 public:
  SchemaWalk(const json::Value& root, std::string path, SchemaUse use, json::Fault& fault)
      : root_(root),
        path_(std::move(path)),
        fault_(fault),
        objections_(fault, use == SchemaUse::Answer) {}

  std::string run() {
    if (const std::size_t bytes = json::to_text(root_).size(); bytes > kBytesMax) {
      objections_.refuse(path_,
                         fmt::format("has {} bytes; at most {} are taken", bytes, kBytesMax));
      return {};
    }
    if (json::to_text(root_).find(kRuleMark) != std::string::npos) {
      objections_.refuse(path_, fmt::format("holds \"{}\", which is not for schemas", kRuleMark));
      return {};
    }
    name_of(root_, path_, "#");
    for (std::size_t i = 0; i < targets_.size() && !fault_; ++i) {
      const Target target = targets_[i];
      made_.push_back(node(*target.schema, target.path, 0));
    }
    if (fault_ || !is_finite()) return {};
    return text();
  }

 private:
  // A schema that a reference names; the first is the root.
  struct Target {
    const json::Value* schema;
    std::string path;
    std::string pointer;
    bool referred = false;
  };

  std::string name_of(const json::Value& schema, const std::string& path,
                      const std::string& pointer) {
    const auto [known, fresh] = names_.emplace(&schema, targets_.size());
    if (fresh) targets_.push_back({.schema = &schema, .path = path, .pointer = pointer});
    return fmt::format("r{}", known->second);
  }

  json::Value node(const json::Value& schema, const std::string& path, int depth) {
    if (fault_) return {};
    if (++nodes_ > kNodesMax) {
      return objections_.refuse(path_, fmt::format("has more than {} nodes", kNodesMax));
    }
    if (depth > kDepthMax)
      return objections_.refuse(path_, fmt::format("nests deeper than {}", kDepthMax));
    if (schema == true) return json::Object();
    const json::Object* object = schema.if_object();
    if (object == nullptr) {
      return objections_.refuse(
          path, fmt::format("is {}; a schema must be an object", json::shown(schema)));
    }
    check_words(*object, path);
    json::Value made = form(*object, path, depth);
    const json::Value* nullable = find(*object, "nullable");
    if (nullable == nullptr || *nullable != true) return made;
    return json::Object{{"anyOf", json::Array{std::move(made), json::Object{{"type", "null"}}}}};
  }

  void check_words(const json::Object& object, const std::string& path) {
    for (const auto& member : object) {
      if (!is_word(view(member.key()))) objections_.leave_out(path, view(member.key()));
    }
  }

  // Words beside one that says it all would be lost.
  void stands_alone(const json::Object& object, std::string_view word, Words beside,
                    const std::string& path) {
    for (const auto& member : object) {
      const std::string_view other = view(member.key());
      if (other == word || is_annotation(other) || one_of(other, beside)) continue;
      objections_.leave_out(path, other,
                            fmt::format("beside {} is not supported; leave one out", word));
    }
  }

  json::Value form(const json::Object& object, const std::string& path, int depth) {
    if (const json::Value* ref = find(object, "$ref")) return reference(object, *ref, path);
    for (const std::string_view word : {"anyOf", "oneOf"}) {
      if (const json::Value* list = find(object, word)) {
        stands_alone(object, word, {}, path);
        return alternatives(*list, fmt::format("{}.{}", path, word), depth);
      }
    }
    if (const json::Value* list = find(object, "allOf"))
      return together(object, *list, path, depth);
    if (const json::Value* value = find(object, "const")) {
      stands_alone(object, "const", {"type"}, path);
      return json::Object{{"const", *value}};
    }
    if (const json::Value* values = find(object, "enum")) return choices(object, *values, path);
    const json::Value* type = find(object, "type");
    if (type == nullptr) return untyped(object, path, depth);
    if (type->is_string()) return typed(object, view(type->get_string()), path, depth);
    const json::Array* types = type->if_array();
    if (types == nullptr || types->empty()) {
      return objections_.refuse(path + ".type", "must be a type's name or a list of them");
    }
    json::Array made;
    for (const json::Value& one : *types) {
      if (!one.is_string())
        return objections_.refuse(path + ".type", "must be a list of types' names");
      made.push_back(typed(object, view(one.get_string()), path, depth));
    }
    return json::Object{{"anyOf", std::move(made)}};
  }

  json::Value reference(const json::Object& object, const json::Value& ref,
                        const std::string& path) {
    stands_alone(object, "$ref", {}, path);
    const json::Value* target = ref.is_string() ? resolve(root_, view(ref.get_string())) : nullptr;
    if (target == nullptr) {
      return objections_.refuse(
          path + ".$ref",
          fmt::format("is {}, which this schema does not have; a reference must be like "
                      "\"#/$defs/name\"",
                      json::shown(ref)));
    }
    const std::string pointer(view(ref.get_string()));
    const std::string name = name_of(*target, path_ + " at " + pointer, pointer);
    targets_[names_.at(target)].referred = true;
    return json::Object{{"$ref", "#/$defs/" + name}};
  }

  json::Value alternatives(const json::Value& list, const std::string& path, int depth) {
    const json::Array* items = list.if_array();
    if (items == nullptr || items->empty())
      return objections_.refuse(path, "must be a list of schemas");
    json::Array made;
    for (std::size_t i = 0; i < items->size(); ++i) {
      made.push_back(node((*items)[i], json::item_path(path, i), depth + 1));
    }
    return json::Object{{"anyOf", std::move(made)}};
  }

  // allOf: one schema alone, or objects that are one object together.
  json::Value together(const json::Object& object, const json::Value& list, const std::string& path,
                       int depth) {
    const json::Array* items = list.if_array();
    if (items == nullptr || items->empty()) {
      return objections_.refuse(path + ".allOf", "must be a list of schemas");
    }
    if (items->size() == 1 && find(object, "properties") == nullptr) {
      stands_alone(object, "allOf", {"type"}, path);
      return node(items->front(), path + ".allOf[0]", depth + 1);
    }
    json::Object merged{{"type", "object"}};
    json::Object properties;
    json::Array required;
    if (!merge(object, merged, properties, required, 0)) {
      objections_.leave_out(path, "allOf",
                            "is supported for objects with different properties only");
      return json::Object();
    }
    merged["properties"] = std::move(properties);
    merged["required"] = std::move(required);
    merged_.push_back(std::move(merged));  // references are found by address
    return typed(merged_.back().get_object(), "object", path, depth);
  }

  bool merge(const json::Object& from, json::Object& to, json::Object& properties,
             json::Array& required, int depth) {
    if (depth > kDepthMax) return false;
    for (const auto& member : from) {
      const std::string_view word = view(member.key());
      if (is_annotation(word) || (word == "type" && member.value() == "object")) continue;
      if (word == "$ref") {
        const json::Value* target = member.value().is_string()
                                        ? resolve(root_, view(member.value().get_string()))
                                        : nullptr;
        if (target == nullptr || !target->is_object()) return false;
        if (!merge(target->get_object(), to, properties, required, depth + 1)) return false;
      } else if (word == "allOf" && member.value().is_array()) {
        for (const json::Value& item : member.value().get_array()) {
          if (!item.is_object()) return false;
          if (!merge(item.get_object(), to, properties, required, depth + 1)) return false;
        }
      } else if (word == "properties" && member.value().is_object()) {
        for (const auto& property : member.value().get_object()) {
          if (!properties.emplace(property.key(), property.value()).second) return false;
        }
      } else if (word == "required" && member.value().is_array()) {
        for (const json::Value& name : member.value().get_array()) required.push_back(name);
      } else if (word == "additionalProperties" && member.value().is_bool()) {
        if (member.value() == false) to["additionalProperties"] = false;
      } else {
        return false;
      }
    }
    return true;
  }

  json::Value choices(const json::Object& object, const json::Value& values,
                      const std::string& path) {
    stands_alone(object, "enum", {"type"}, path);
    const json::Array* items = values.if_array();
    if (items == nullptr || items->empty()) {
      return objections_.refuse(path + ".enum", "must be a list of at least one value");
    }
    const json::Value* type = find(object, "type");
    const auto of_type = [&](const json::Value& value) {
      if (type == nullptr) return true;
      if (type->is_string()) return is_type(value, view(type->get_string()));
      if (!type->is_array()) return false;
      return std::ranges::any_of(type->get_array(), [&](const json::Value& one) {
        return one.is_string() && is_type(value, view(one.get_string()));
      });
    };
    json::Array right;
    for (const json::Value& value : *items) {
      if (of_type(value)) right.push_back(value);
    }
    if (right.empty())
      return objections_.refuse(path + ".enum", "has no value of the schema's type");
    return json::Object{{"enum", std::move(right)}};
  }

  json::Value untyped(const json::Object& object, const std::string& path, int depth) {
    const auto any = [&](bool (*is_of)(std::string_view)) {
      return std::ranges::any_of(object, [&](const auto& m) { return is_of(view(m.key())); });
    };
    if (any(is_of_objects)) return typed(object, "object", path, depth);
    if (any(is_of_arrays)) return typed(object, "array", path, depth);
    if (any(is_of_strings)) return typed(object, "string", path, depth);
    if (any(is_of_numbers)) return typed(object, "number", path, depth);
    return json::Object();
  }

  json::Value typed(const json::Object& object, std::string_view type, const std::string& path,
                    int depth) {
    if (type == "string") return string_leaf(object, path, objections_);
    if (type == "integer") return integer_leaf(object, path, objections_);
    if (type == "number") return number_leaf(object, path, objections_);
    if (type == "array") return array_node(object, path, depth);
    if (type == "object") return object_node(object, path, depth);
    if (type == "boolean" || type == "null") return json::Object{{"type", json_name(type)}};
    return objections_.refuse(
        path + ".type",
        fmt::format("is \"{}\"; types are string, number, integer, boolean, null, array "
                    "and object",
                    type.substr(0, 40)));
  }

  json::Value array_node(const json::Object& object, const std::string& path, int depth) {
    json::Object made{{"type", "array"}};
    for (const std::string_view word : {"contains", "minContains", "maxContains"}) {
      if (find(object, word) != nullptr) objections_.leave_out(path, word);
    }
    const json::Value* items = find(object, "items");
    const json::Value* first = find(object, "prefixItems");
    if (first == nullptr && items != nullptr && items->is_array()) std::swap(first, items);
    counts(object, "minItems", "maxItems", path, made, objections_);
    if (const json::Value* unique = find(object, "uniqueItems");
        unique != nullptr && *unique != false) {
      const auto lists = first == nullptr && items != nullptr ? different_lists(root_, *items, made)
                                                              : std::nullopt;
      if (lists) return *lists;
      objections_.leave_out(path, "uniqueItems",
                            fmt::format("is supported for items with an enum that leaves at most "
                                        "{} different lists",
                                        kDifferentListsMax));
    }
    if (first != nullptr) return tuple(*first, items, made, path, depth);
    if (items != nullptr) made["items"] = node(*items, path + ".items", depth + 1);
    return made;
  }

  // Exactly the items that are listed.
  json::Value tuple(const json::Value& first, const json::Value* items, const json::Object& counts,
                    const std::string& path, int depth) {
    const json::Array* list = first.if_array();
    if (list == nullptr || list->empty()) {
      return objections_.refuse(path + ".prefixItems", "must be a list of schemas");
    }
    const auto size = static_cast<std::int64_t>(list->size());
    const json::Value* least = find(counts, "minItems");
    const json::Value* most = find(counts, "maxItems");
    if ((least != nullptr && least->get_int64() > size) ||
        (most != nullptr && most->get_int64() < size)) {
      objections_.leave_out(path, "prefixItems",
                            fmt::format("has {} items, which minItems or maxItems rule "
                                        "out; more or fewer are not supported",
                                        size));
    }
    if (items != nullptr && *items != false && *items != true) {
      objections_.leave_out(path, "items", "beside prefixItems must be false");
    }
    json::Array made;
    for (std::size_t i = 0; i < list->size(); ++i) {
      made.push_back(node((*list)[i], json::item_path(path + ".prefixItems", i), depth + 1));
    }
    return json::Object{{"type", "array"}, {"prefixItems", std::move(made)}};
  }

  json::Value object_node(const json::Object& object, const std::string& path, int depth) {
    for (const std::string_view word :
         {"patternProperties", "propertyNames", "minProperties", "maxProperties",
          "dependentRequired", "dependentSchemas", "dependencies"}) {
      if (find(object, word) != nullptr) objections_.leave_out(path, word);
    }
    json::Object made{{"type", "object"}};
    std::set<std::string> names;
    bool plain = true;  // names that the rules can tell others from
    if (const json::Value* properties = find(object, "properties")) {
      if (!properties->is_object())
        return objections_.refuse(path + ".properties", "must be an object");
      json::Object list;
      for (const auto& member : properties->get_object()) {
        const std::string name(view(member.key()));
        list[member.key()] =
            node(member.value(), fmt::format("{}.properties.{}", path, name), depth + 1);
        names.insert(name);
        plain = plain && name.find_first_of("]^\\-") == name.npos;
      }
      made["properties"] = std::move(list);
    }
    const std::set<std::string> required = required_of(object, names, path);
    if (names.size() - required.size() > kOptionalMax) {
      return objections_.refuse(
          path, fmt::format("has {} properties that may be left out; at most {} are "
                            "supported",
                            names.size() - required.size(), kOptionalMax));
    }
    made["required"] = json::Array(required.begin(), required.end());
    const json::Value* more = find(object, "additionalProperties");
    if (more == nullptr) more = find(object, "unevaluatedProperties");
    if (more != nullptr && more->is_object()) {
      json::Value held = node(*more, path + ".additionalProperties", depth + 1);
      if (plain) made["additionalProperties"] = std::move(held);
    } else if (more != nullptr && !more->is_bool()) {
      return objections_.refuse(path + ".additionalProperties", "must be a boolean or a schema");
    } else if (more != nullptr && (plain || *more == false)) {
      made["additionalProperties"] = *more;
    }
    return made;
  }

  std::set<std::string> required_of(const json::Object& object, const std::set<std::string>& names,
                                    const std::string& path) {
    std::set<std::string> out;
    const json::Value* required = find(object, "required");
    if (required == nullptr) return out;
    if (!required->is_array()) {
      objections_.refuse(path + ".required", "must be a list of properties' names");
      return out;
    }
    for (const json::Value& name : required->get_array()) {
      const bool known = name.is_string() && names.contains(std::string(view(name.get_string())));
      if (known) {
        out.emplace(view(name.get_string()));
      } else {
        objections_.leave_out(
            path, "required",
            fmt::format("has {}, which is not among the properties", json::shown(name)));
      }
    }
    return out;
  }

  bool is_finite() {
    if (const int at = find_cycle(made_); at >= 0) {
      objections_.refuse(
          path_, fmt::format("has a cycle: \"{}\" refers to itself without anything between",
                             targets_[static_cast<std::size_t>(at)].pointer));
    } else if (!has_end(made_)) {
      objections_.refuse(path_, "has a cycle of required parts: no finite value satisfies it");
    }
    return !fault_;
  }

  std::string text() const {
    json::Object defs;
    const bool referred = targets_[0].referred;
    for (std::size_t i = referred ? 0 : 1; i < made_.size(); ++i) {
      defs[fmt::format("r{}", i)] = made_[i];
    }
    json::Object out = referred ? json::Object{{"$ref", "#/$defs/r0"}} : made_[0].get_object();
    if (!defs.empty()) out["$defs"] = std::move(defs);
    return json::to_text(out);
  }

  const json::Value& root_;
  const std::string path_;
  json::Fault& fault_;
  Objections objections_;
  int nodes_ = 0;
  std::map<const json::Value*, std::size_t> names_;
  std::vector<Target> targets_;
  std::vector<json::Value> made_;  // of each target
  std::deque<json::Value> merged_;
};

}  // namespace

std::string holdable_schema(const json::Value& schema, const std::string& path, SchemaUse use,
                            json::Fault& fault) {
  return SchemaWalk(schema, path, use, fault).run();
}

}  // namespace flotilla::api
