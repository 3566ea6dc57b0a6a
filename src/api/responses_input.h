#pragma once

#include "api/json.h"

namespace flotilla::api {

struct ResponsesInput {
  json::Array messages;  // chat's
  json::Array items;     // the client's, a bare text as the item that it means
};

// The member `input`: a text or items (messages, function calls and their outputs, reasoning). Sets
// the reader's fault.
ResponsesInput read_responses_input(json::Reader& in);

}  // namespace flotilla::api
