#pragma once

#include <string>
#include <vector>

#include "api/engine_template.h"
#include "config/yaml.h"

// `engines:` of flotilla.yaml.
namespace flotilla::config {

// A map of names to descriptions; one of a shipped template's name begins with that one, and may be
// empty. The error names the place and what it takes.
Result<std::vector<api::EngineTemplate>> read_engines(const Node& engines);

// Its JSON schema, without the outermost braces.
std::string engines_schema();

}  // namespace flotilla::config
