#pragma once

#include <initializer_list>
#include <string_view>

#include "api/json.h"

// What OpenAI's and Anthropic's APIs know and this server does not do: refused by name, unless its
// value asks for nothing. A field of theirs that no reader looks at would be dropped silently; a
// test holds every field of their SDKs against the server.
namespace flotilla::api {

// `why`: "is not supported", of a field whose value asks for something.
void refuse_field(json::Reader& in, std::string_view name, std::string_view why);
// Those of `names` that are neither unset, false, nor an empty list or object.
void refuse_fields(json::Reader& in, std::initializer_list<std::string_view> names);
// One that may have its default, and no other value.
void refuse_but(json::Reader& in, std::string_view name, std::string_view allowed);
// A list of `allowed` alone.
void refuse_items_but(json::Reader& in, std::string_view name, std::string_view allowed);

// What changes no answer, looked at for its form alone: prefixes are reused unasked, and none of
// the models served knows a verbosity.
void read_cache_hints(json::Reader& in);
// Of a text part: where a client would have its prefix end.
void read_cache_breakpoint(json::Reader& part);
// Anthropic's name for the same.
void read_cache_control(json::Reader& in);
// Of a call or its result: whom it is between, where that is not the model and the client alone.
void read_caller(json::Reader& in);
// Chunks are never padded to hide their lengths.
void read_obfuscation(json::Reader& stream_options);

}  // namespace flotilla::api
