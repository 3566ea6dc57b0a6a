#pragma once

#include "api/json.h"
#include "api/node_spec.h"

// A node inside other bodies. For api/'s own files.
namespace flotilla::api {

inline constexpr int kNodesMax = 1024;
inline constexpr std::string_view kIdRule =
    "must be 1-41 characters of a-z, 0-9 and -, the first no -";
bool is_id(std::string_view text);

NodeSpec read_node(json::Reader reader);
json::Object node_object(const NodeSpec& node, bool with_secrets);

}  // namespace flotilla::api
