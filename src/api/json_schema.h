#pragma once

#include <string>

#include "api/json.h"

namespace flotilla::api {

// JSON schemas from outside. llama-common makes grammars of them but leaves out in silence what it
// does not know, and ends the process or runs for minutes on some; so each schema is walked first.
enum class SchemaUse {
  Answer,  // each constraint will hold: what cannot be held is refused by name
  Tool,    // what cannot be held is left to the model, which reads the schema itself
};

// The schema in the words that a grammar can be made of: references into its own $defs, one type or
// alternatives at a place, patterns that stay inside a JSON string. Empty after the fault was set:
// a missing or endless reference, no finite value, an unknown type, more than 64 KiB, 64 levels,
// 2,000 nodes or 1,000 repetitions. `path` names the schema in messages.
std::string holdable_schema(const json::Value& schema, const std::string& path, SchemaUse use,
                            json::Fault& fault);

}  // namespace flotilla::api
