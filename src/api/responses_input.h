#pragma once

#include "api/json.h"
#include "api/stored_items.h"

namespace flotilla::api {

struct ResponsesInput {
  json::Array messages;  // chat's
  json::Array items;     // the client's, each name of one and a bare text as the item it means
};

// The member `input`: a text or items (messages, function calls and their outputs, reasoning, names
// of stored ones). Sets the reader's fault. Without the items that `stored` still needs.
ResponsesInput read_responses_input(json::Reader& in, StoredItems& stored);

}  // namespace flotilla::api
