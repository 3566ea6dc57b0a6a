#pragma once

#include "api/embeddings.h"
#include "api/json.h"
#include "api/openai.h"

namespace flotilla::api {

// Requests whose body is parsed already.
Result<ChatRequest> read_chat_request(const json::Object& body);
Result<EmbeddingsRequest> read_embeddings_request(const json::Object& body);

}  // namespace flotilla::api
