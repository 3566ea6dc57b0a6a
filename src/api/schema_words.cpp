#include "api/schema_words.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace flotilla::api::schema {
namespace {

// "a~1b" -> "a/b", "%24" -> "$"
std::string pointer_part(std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::string_view rest = part.substr(i);
    unsigned code = 0;
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      out += rest[1] == '0' ? '~' : '/';
      ++i;
    } else if (rest.size() > 2 && rest[0] == '%' &&
               std::from_chars(rest.data() + 1, rest.data() + 3, code, 16).ptr == rest.data() + 3) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += rest[0];
    }
  }
  return out;
}

}  // namespace

bool one_of(std::string_view word, Words words) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view view(const boost::json::string_view& text) { return {text.data(), text.size()}; }

bool is_annotation(std::string_view word) {
  return word.starts_with("x-") || one_of(word, {"title",
                                                 "description",
                                                 "default",
                                                 "examples",
                                                 "example",
                                                 "$schema",
                                                 "$id",
                                                 "id",
                                                 "$comment",
                                                 "$anchor",
                                                 "deprecated",
                                                 "readOnly",
                                                 "writeOnly",
                                                 "$defs",
                                                 "definitions",
                                                 "contentEncoding",
                                                 "contentMediaType",
                                                 "discriminator",
                                                 "xml",
                                                 "externalDocs",
                                                 "nullable",
                                                 "strict",
                                                 "name"});
}

bool is_of_strings(std::string_view word) {
  return one_of(word, {"minLength", "maxLength", "pattern", "format"});
}
bool is_of_numbers(std::string_view word) {
  return one_of(word, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
}
bool is_of_arrays(std::string_view word) {
  return one_of(word, {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains",
                       "minContains", "maxContains", "unevaluatedItems", "additionalItems"});
}
bool is_of_objects(std::string_view word) {
  return one_of(word, {"properties", "required", "additionalProperties", "patternProperties",
                       "propertyNames", "minProperties", "maxProperties", "dependentRequired",
                       "dependentSchemas", "dependencies", "unevaluatedProperties"});
}

boost::json::string json_name(std::string_view name) {
  return boost::json::string(name.data(), name.size());
}

const json::Value* find(const json::Object& object, std::string_view name) {
  return object.if_contains({name.data(), name.size()});
}

const json::Value* resolve(const json::Value& root, std::string_view pointer) {
  if (!pointer.starts_with('#')) return nullptr;
  pointer.remove_prefix(1);
  const json::Value* at = &root;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    pointer.remove_prefix(1);
    const std::string part = pointer_part(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.size(), pointer.find('/')));
    if (const json::Object* object = at->if_object()) {
      at = find(*object, part);
    } else if (const json::Array* array = at->if_array()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      const bool there =
          error == std::errc{} && end == part.data() + part.size() && index < array->size();
      at = there ? &(*array)[index] : nullptr;
    } else {
      at = nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

bool is_type(const json::Value& value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return value.is_object();
}

bool is_word(std::string_view word) {
  return one_of(word, {"$ref", "anyOf", "oneOf", "allOf", "const", "enum", "type"}) ||
         is_annotation(word) || is_of_strings(word) || is_of_numbers(word) || is_of_arrays(word) ||
         is_of_objects(word);
}

namespace {

std::size_t index_of(const json::Value& ref) {
  constexpr std::string_view kBegin = "#/$defs/r";
  return std::stoul(std::string(view(ref.get_string()).substr(kBegin.size())));
}

// References that a value is made of before anything of it is written.
void bare_references(const json::Value& value, std::vector<std::size_t>& out) {
  const json::Object& object = value.get_object();
  if (const json::Value* ref = find(object, "$ref")) out.push_back(index_of(*ref));
  if (const json::Value* list = find(object, "anyOf")) {
    for (const json::Value& one : list->get_array()) bare_references(one, out);
  }
}

bool ends(const json::Value& value, const std::vector<bool>& known) {
  const json::Object& object = value.get_object();
  const auto one = [&](const json::Value& item) { return ends(item, known); };
  if (const json::Value* ref = find(object, "$ref")) return known[index_of(*ref)];
  if (const json::Value* list = find(object, "anyOf")) {
    return std::ranges::any_of(list->get_array(), one);
  }
  if (const json::Value* list = find(object, "prefixItems")) {
    return std::ranges::all_of(list->get_array(), one);
  }
  if (const json::Value* items = find(object, "items")) {
    return find(object, "minItems") == nullptr || one(*items);
  }
  if (const json::Value* required = find(object, "required")) {
    return std::ranges::all_of(required->get_array(), [&](const json::Value& name) {
      return one(object.at("properties").get_object().at(name.get_string()));
    });
  }
  return true;
}

}  // namespace

int find_cycle(const std::vector<json::Value>& made) {
  std::vector<std::vector<std::size_t>> edges(made.size());
  std::vector<int> coming(made.size(), 0);
  for (std::size_t i = 0; i < made.size(); ++i) {
    bare_references(made[i], edges[i]);
    for (const std::size_t to : edges[i]) ++coming[to];
  }
  // What no circle leads to is taken away; what remains is in one or behind one.
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < coming.size(); ++i) {
    if (coming[i] == 0) free.push_back(i);
  }
  while (!free.empty()) {
    const std::size_t from = free.back();
    free.pop_back();
    for (const std::size_t to : edges[from]) {
      if (--coming[to] == 0) free.push_back(to);
    }
  }
  const auto at = std::ranges::find_if(coming, [](int n) { return n > 0; });
  return at == coming.end() ? -1 : static_cast<int>(at - coming.begin());
}

bool has_end(const std::vector<json::Value>& made) {
  std::vector<bool> known(made.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (known[i] || !ends(made[i], known)) continue;
      known[i] = changed = true;
    }
  }
  return known[0];
}

}  // namespace flotilla::api::schema
