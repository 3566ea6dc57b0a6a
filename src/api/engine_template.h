#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flotilla::api {

// An engine that is not ours, as flotilla.yaml's `engines:` describes it. In words, variables and
// body_model {port} {model} {alias} {batch_size} {prefill_batch} {context} {window} {threads} stand
// for a load's values.
struct EngineTemplate {
  std::string name = {};
  // Each part is a word, or some that belong together: those are left out where a value in them is
  // not set (an option and its {context}).
  std::vector<std::vector<std::string>> command = {};
  std::string cwd = {};                         // absolute, on the node; empty = the agent's
  std::map<std::string, std::string> env = {};  // one whose value is not set is left out
  std::string body_model = "{alias}";           // what requests call the model
  std::string health = "/health";               // answers 200 once the engine serves
  std::string base_path = "/v1";
  bool model_by_name = false;  // the engine knows the model by its name: no file is looked for
  bool drops_seed = false;     // a client's seed, too, is not passed on
  bool salts_cache = false;    // by a request's cache_salt it keeps cached prefixes apart
  std::vector<std::string> lacks = {};  // request fields that it ignores: they are refused
};

// What fills the places of a template.
struct EngineValues {
  std::string alias = {};
  std::string model = {};  // as the load names it
  int batch_size = 1;
  int prefill_batch = 1;
  int context = 0;  // 0 = the model's own
  int window = 0;
  int threads = 0;
};

// A template with a load's values in it; "{port}" and "{model}" in words and variables are left to
// the machine's agent, which knows the file and chooses the port.
struct EngineSpec {
  std::string name = {};
  std::vector<std::string> command = {};
  std::map<std::string, std::string> env = {};
  std::string cwd = {};
  bool model_by_name = false;
  bool folders_only = false;  // no engine was asked for: a GGUF is our runner's

  bool operator==(const EngineSpec&) const = default;
};

EngineSpec fill_template(const EngineTemplate& engine, const EngineValues& values);
// One text of it, {model} included.
std::string fill_text(std::string_view text, const EngineValues& values);
// A word as the agent starts it.
std::string fill_place(std::string_view word, std::string_view model, int port);

// What no place and no name may hold: a head or a log would take it for more than a part of one.
bool has_control_characters(std::string_view text);

// Those that we ship: mlx, vllm, llama-server, ollama. An entry of flotilla.yaml of the same name
// begins with it.
const std::vector<EngineTemplate>& shipped_engines();
const EngineTemplate* find_engine(const std::vector<EngineTemplate>& engines,
                                  std::string_view name);
// The template that a model folder takes on such a machine: "macos-arm64" -> mlx.
std::string_view engine_for_folders(std::string_view platform);
// What to write into flotilla.yaml where `name` is not there.
std::string how_to_configure(std::string_view name);

}  // namespace flotilla::api
