#include "config/file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/nearest.h"

namespace flotilla::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 64 << 10;

class SettingsReader {
 public:
  SettingsReader(std::span<const Setting> settings, const fs::path& file)
      : settings_(settings), folder_(file.parent_path()), problems_(file.string()) {
    for (const Setting& setting : settings)
      if (!setting.section.empty()) sections_.insert(setting.section);
  }

  Result<FileValues> read(const Node& root) {
    read_map(root, "");
    if (!problems_.empty()) return problems_.unexpected();
    return std::move(values_);
  }

 private:
  void read_map(const Node& map, const std::string& section) {
    if (map.kind == Node::Kind::Null) return;  // an empty file, or a section without a line in it
    if (!map.is_map()) {
      problems_.add(map.at, fmt::format("{} is {}; it takes a map, NAME: VALUE a line",
                                        section.empty() ? "the file" : section, shown(map)));
      return;
    }
    for (const Node& member : map.items) {
      if (section.empty() && sections_.contains(member.key)) {
        read_map(member, member.key);
      } else {
        read_member(member, section);
      }
    }
  }

  void read_member(const Node& member, const std::string& section) {
    const auto wanted = std::ranges::find_if(settings_, [&](const Setting& setting) {
      return setting.key == member.key && setting.section == section;
    });
    if (wanted == settings_.end()) return problems_.add(member.key_at, unknown(member, section));
    auto value = read_value(*wanted, member);
    if (!value) {
      // A tree's message names the place in it.
      const std::string& words = value.error().message;
      return problems_.add(member.at,
                           wanted->check ? words : fmt::format("{} is {}", wanted->name(), words));
    }
    if (auto* path = std::get_if<fs::path>(&*value); path != nullptr && !path->empty())
      *path = (folder_ / *path).lexically_normal();
    values_[wanted->name()] = {.value = std::move(*value), .line = member.key_at.line};
  }

  std::string unknown(const Node& member, const std::string& section) const {
    std::vector<std::string_view> near(sections_.begin(), sections_.end());
    if (!section.empty()) near.clear();
    for (const Setting& setting : settings_) {
      if (setting.section == section) near.push_back(setting.key);
      if (setting.section != section && setting.key == member.key) {
        return fmt::format("{} does not stand here; it belongs {}", member.key,
                           setting.section.empty() ? "at the top" : "under " + setting.section);
      }
    }
    return fmt::format("there is no {}{} \"{}\";{} `flotilla config schema` has them all",
                       section.empty() ? "setting" : section, section.empty() ? "" : " entry",
                       member.key.substr(0, 100), did_you_mean(member.key, near));
  }

  std::span<const Setting> settings_;
  const fs::path folder_;
  std::set<std::string> sections_;
  Problems problems_;
  FileValues values_;
};

}  // namespace

Result<FileValues> read_settings(std::span<const Setting> settings, std::string_view text,
                                 const fs::path& file) {
  const auto root = parse_yaml(text, file.string());
  if (!root) return fail(root.error());
  return SettingsReader(settings, file).read(*root);
}

Result<std::string> read_file(const fs::path& file, std::size_t bytes_max) {
  std::error_code wrong;
  if (fs::is_directory(file, wrong))
    return fail(Code::InvalidArgument, fmt::format("{} is a folder, not a file", file.string()));
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::string piece(kPiece, '\0');
  while (in && text.size() <= bytes_max) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(in.gcount()));
  }
  if (!in && !in.eof()) {
    return fail(Code::NotFound,
                fmt::format("{} cannot be read: {}", file.string(),
                            std::error_code(errno, std::generic_category()).message()));
  }
  return text;
}

}  // namespace flotilla::config
