#pragma once

#include <functional>

#include "api/model_copy.h"
#include "platform/fd.h"

// A machine's end of a copy of model files (api/model_copy). Blocks on the disk and on its pipe.
namespace flotilla::agent {

api::CopyAnswer list_files(const api::CopyOrder& order);
api::CopyAnswer look_at_files(const api::CopyOrder& order);
// What takes a file's whole time ends, Cancelled, once nobody reads from `asker` any more: a copy
// that was cancelled keeps no disk busy.
api::CopyAnswer hash_file(const api::CopyOrder& order, const platform::Fd* asker = nullptr);
Result<void> send_file(const api::CopyOrder& order, const platform::Fd& out);
// What comes is appended to a hidden file beside its place, which it takes only when its hash is
// the sender's. What came before a break stays there; what is not the sender's file is dropped.
Result<void> receive_file(const platform::Fd& in,
                          const std::function<void(std::int64_t have)>& progress,
                          const platform::Fd* asker = nullptr);

// One task with its order on stdin and its answer on stdout; the process's exit code.
int run_copy(api::CopyTask task);

}  // namespace flotilla::agent
