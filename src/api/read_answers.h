#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/admin.h"
#include "api/chat_chunks.h"
#include "base/result.h"

// A server's answers as structs, for our own commands. Lenient, unlike what reads requests: the
// server may be newer than the command or another engine, so unknown members are skipped, missing
// ones keep their defaults, and only what is not the expected shape at all is an error.
namespace flotilla::api {

// One event of a chat stream.
struct ChatEvent {
  std::string text;           // of all choices: content, or reasoning_content
  std::string finish_reason;  // of the choice that ended in it
  std::string node;           // that answers; a Flotilla says it in the last chunk
  bool has_usage = false;
  Usage usage;
};
// An error event comes back as its Error.
Result<ChatEvent> read_chat_event(std::string_view data);

// The models of GET /v1/models that can be asked; another engine's list has no x_flotilla and
// counts as ready.
Result<std::vector<std::string>> read_ready_models(std::string_view body);

Result<std::vector<ClusterSpec>> read_clusters(std::string_view body);
Result<ClusterStatus> read_status(std::string_view body);
Result<LoadAnswer> read_load_answer(std::string_view body);
Result<ReplicaStatus> read_replica_answer(std::string_view body);

}  // namespace flotilla::api
