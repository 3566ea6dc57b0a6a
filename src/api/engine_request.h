#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai.h"

// Requests on their way to engines that are not ours.
namespace flotilla::api {

// An engine that is not ours, as requests meet it.
struct ForeignEngine {
  std::string name;     // its template's; of an http node what it says it is; empty: not known
  std::string where;    // its URL or address, for messages
  std::string api_key;  // empty: it wants none
  std::string model;    // what requests call the model; empty: the first that it lists
  std::string health;   // at its root, answers 200 while it serves; empty: its models are listed
  bool drops_seed = false;
  bool salts_cache = false;        // by a request's cache_salt it keeps cached prefixes apart
  std::vector<std::string> lacks;  // request fields that it ignores: they are refused
};

// Fields of a chat request that an engine may lack. The names that lists of `lacks` take.
const std::vector<std::string_view>& refusable_fields();

// A client's request as any of them may get it: made of the tree that its body is parsed to, once,
// and kept as text, since a tree takes many times as much.
struct EngineRequest {
  enum class Kind { Chat, Completion, Vectors };
  Kind kind = Kind::Chat;
  // Members of a JSON object: of a chat's those that OpenAI's clients and ours know, what others
  // call otherwise renamed; of vectors all but the model.
  std::string fields = {};
  std::string seed = {};                    // as the client wrote it; empty: it wrote none
  std::vector<std::string_view> asks = {};  // of refusable_fields() those that ask for something
};

// Models that such engines may serve, when a body is read: those named, or all but those.
struct EngineModels {
  std::vector<std::string> names = {};
  bool all_but = false;

  bool hold(std::string_view model) const;
};

// A body, parsed once.
struct ServedRequest {
  ChatRequest chat;                          // of vectors what a place for them depends on
  std::optional<EngineRequest> for_engines;  // of a model that engines may serve
};
Result<ServedRequest> read_served_chat(std::string_view body, const EngineModels& models);
Result<ServedRequest> read_served_vectors(std::string_view body, const EngineModels& models);

// InvalidArgument: it is no request for such engines, or names the first field that asks for what
// `lacks` says; and the engine.
Result<void> check_engine_can(const EngineRequest& request, const std::vector<std::string>& lacks,
                              std::string_view engine);

// The body that an engine gets: its own model's name and, but for vectors, always streamed with its
// usage. `cache_salt` is for those that know it; empty: none.
std::string engine_body(const EngineRequest& request, const ForeignEngine& engine,
                        std::string_view cache_salt);

}  // namespace flotilla::api
