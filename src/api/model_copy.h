#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What the two ends of a model's copy between machines say: JSON on stdin and stdout of
// `flotilla agent --copy TASK`, so that no name is ever a word of a command line. A sender's stdout
// is a receiver's stdin: the receiver's order as a line, the file from `offset` on, then the 64 hex
// digits of the whole file's SHA-256.
namespace flotilla::api {

enum class CopyTask {
  List,     // of `model`: its files
  Look,     // of `files`: what has come of each already
  Hash,     // of the file `path`
  Send,     // the file `path`, and before it `to`
  Receive,  // tells how far it is, a line each
};
const char* to_string(CopyTask task);
Result<CopyTask> parse_copy_task(std::string_view name);

struct CopyFile {
  std::string path = {};  // in models_dir
  std::int64_t bytes = 0;
  std::int64_t have = 0;  // of a part
  bool whole = false;     // a file of this size is in its place
};

struct CopyOrder {
  std::string models_dir = {};
  std::string model = {};
  std::vector<CopyFile> files = {};
  std::string path = {};
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
  std::string to = {};  // JSON: the receiver's order
};
std::string to_json(const CopyOrder& order);  // one line, without its end
Result<CopyOrder> parse_copy_order(std::string_view text);

struct CopyAnswer {
  std::string error = {};
  std::vector<CopyFile> files = {};
  std::int64_t free_bytes = 0;
  std::int64_t have = 0;  // of the file that is received
  bool done = false;      // it is in its place
  std::string hash = {};
};
std::string to_json(const CopyAnswer& answer);
// An answer with an error is that error.
Result<CopyAnswer> parse_copy_answer(std::string_view text);

}  // namespace flotilla::api
