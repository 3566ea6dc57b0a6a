#include "cli/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

namespace flotilla::cli {
namespace {

// Cells that a text takes: bytes that do not continue a UTF-8 character. Enough for our own words.
std::size_t cells(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == '\n' || byte == '\t' || byte == '\r') {
      out += byte == '\n' && lines == Lines::Kept ? '\n' : ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F
      out += '?';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string bar(std::int64_t done, std::int64_t total, int width) {
  const double part =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                : (done > 0 ? 1.0 : 0.0);
  const auto filled = static_cast<int>(part * width);
  std::string out;
  for (int i = 0; i < width; ++i) out += i < filled ? "█" : "░";
  return out;
}

std::string table(const std::vector<std::vector<std::string>>& foreign_rows) {
  std::vector<std::vector<std::string>> rows = foreign_rows;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cells(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - cells(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

void LiveLines::draw(const std::vector<std::string>& lines) {
  std::string out;
  if (drawn_ > 0) out += fmt::format("\x1b[{}A", drawn_);
  for (const std::string& line : lines) out += "\x1b[2K" + line + "\n";
  if (lines.size() < drawn_) out += "\x1b[J";
  drawn_ = lines.size();
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

}  // namespace flotilla::cli
