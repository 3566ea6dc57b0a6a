#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Text for people: sizes, bars, and lines that are drawn over.
namespace flotilla::cli {

bool stdout_is_terminal();

// Text that somebody else wrote (a model's name, a message), safe to print: control characters,
// which a terminal would obey, become "?", tabs and (but for Lines::Kept) line ends spaces.
enum class Lines { Joined, Kept };
std::string printable(std::string_view text, Lines lines = Lines::Joined);

std::string bytes_text(std::int64_t bytes);  // "93.8 MiB"
std::string duration_text(double seconds);   // "3.2 s", "4 min 10 s"
// `width` cells, filled by done / total; full when total is 0 and done.
std::string bar(std::int64_t done, std::int64_t total, int width);

// A table whose columns are as wide as their widest cell; the first row is its heading. Cells are
// made printable.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Lines that are drawn again in place. On a terminal only.
class LiveLines {
 public:
  void draw(const std::vector<std::string>& lines);

 private:
  std::size_t drawn_ = 0;
};

}  // namespace flotilla::cli
