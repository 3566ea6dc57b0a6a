#include "agent/runner_log.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "platform/files.h"

namespace flotilla::agent {
namespace {

constexpr std::size_t kLinesMax = 40;
constexpr std::size_t kLineMax = 1000;
constexpr std::size_t kTailMax = std::size_t{8} << 10;

}  // namespace

RunnerLog::RunnerLog(std::filesystem::path file, std::int64_t bytes_max)
    : file_(std::move(file)), bytes_max_(bytes_max) {}

void RunnerLog::append(std::string_view chunk) {
  write_file(chunk);
  for (const char c : chunk) {
    if (c != '\n') {
      if (line_.size() < kLineMax) line_ += c;
      continue;
    }
    lines_.push_back(std::exchange(line_, {}));
    if (lines_.size() > kLinesMax) lines_.pop_front();
  }
}

std::string RunnerLog::tail() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  text += line_;
  if (text.size() > kTailMax) text.erase(0, text.size() - kTailMax);
  return text;
}

std::string RunnerLog::last_line() const {
  if (!line_.empty()) return line_;
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line)
    if (!line->empty()) return *line;
  return {};
}

void RunnerLog::write_file(std::string_view chunk) {
  if (fd_ && bytes_ + static_cast<std::int64_t>(chunk.size()) > bytes_max_) {
    std::error_code ignored;
    std::filesystem::rename(file_, std::filesystem::path(file_.string() + ".1"), ignored);
    fd_.reset();
  }
  if (!fd_) {
    fd_ = platform::open_to_append(file_);
    bytes_ = platform::file_bytes(fd_);
  }
  platform::write_some(fd_, chunk);
  bytes_ += static_cast<std::int64_t>(chunk.size());
}

std::string log_file_name(std::string_view node, std::string_view alias) {
  return file_name_of(std::string(node) + "-" + std::string(alias)) + ".log";
}

api::LogText read_log(const std::filesystem::path& file, std::int64_t offset) {
  api::LogText out;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) {
    out.error = "there is no log of it on that machine";
    return out;
  }
  const auto size = static_cast<std::int64_t>(in.tellg());
  if (offset < 0) offset = std::max<std::int64_t>(0, size + offset);
  if (offset > size) offset = 0;
  out.text.resize(static_cast<std::size_t>(
      std::min<std::int64_t>(size - offset, static_cast<std::int64_t>(kTailMax))));
  in.seekg(offset);
  in.read(out.text.data(), static_cast<std::streamsize>(out.text.size()));
  out.text.resize(static_cast<std::size_t>(in.gcount()));
  out.next = offset + static_cast<std::int64_t>(out.text.size());
  return out;
}

std::string file_name_of(std::string_view text) {
  std::string name(text.substr(0, 120));
  for (char& c : name) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    if (!kept) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(name.begin(), '_');
  return name;
}

}  // namespace flotilla::agent
