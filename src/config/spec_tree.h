#pragma once

#include <initializer_list>
#include <string_view>

#include "api/declared.h"
#include "api/keys.h"
#include "config/yaml.h"

// What is declared as trees without what is as it would be anyway: to be written, and compared.
// They come from the JSON of /admin, so no field can be forgotten here.
namespace flotilla::config {

Node tree_of(const api::ClusterSpec& cluster);
Node tree_of(const api::DeclaredPool& pool);
Node tree_of(const api::KeySpec& key);

// The members of a map that are not named.
Node without(Node map, std::initializer_list<std::string_view> keys);
// "batch: unset -> true, nodes.gpu.port: 22 -> 2222"; items of a list that have ids are held
// against each other by these. Empty: the same.
std::string differences(const Node& before, const Node& after);

}  // namespace flotilla::config
