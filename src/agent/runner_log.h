#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "api/agent_frames.h"
#include "platform/fd.h"

namespace flotilla::agent {

// A runner's stderr: its last lines in memory, all of it in a file that is moved to FILE.1 at 10
// MiB. What cannot be written (disk full) is lost; the runner is not.
class RunnerLog {
 public:
  explicit RunnerLog(std::filesystem::path file, std::int64_t bytes_max = std::int64_t{10} << 20);

  void append(std::string_view chunk);
  // The last lines, at most 40 and 8 KiB; one that is not ended counts.
  std::string tail() const;
  // The last one that is not empty.
  std::string last_line() const;

 private:
  void write_file(std::string_view chunk);

  const std::filesystem::path file_;
  const std::int64_t bytes_max_;
  platform::Fd fd_;
  std::int64_t bytes_ = 0;
  std::deque<std::string> lines_;
  std::string line_;
};

// The file of a replica's log.
std::string log_file_name(std::string_view node, std::string_view alias);
// At most 8 KiB of a file from `offset` on (< 0: before its end); a file that is shorter by now was
// moved away, and is read from its beginning.
api::LogText read_log(const std::filesystem::path& file, std::int64_t offset);

// A file name from any text: what is not [A-Za-z0-9._-] becomes '_'.
std::string file_name_of(std::string_view text);

}  // namespace flotilla::agent
