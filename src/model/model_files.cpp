#include "model/model_files.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "model/split_name.h"

namespace flotilla::model {
namespace {

namespace fs = std::filesystem;

constexpr int kDepthMax = 8;
constexpr std::size_t kEntriesMax = 100000;

bool is_gguf(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension == ".gguf";
}

bool is_inside(const fs::path& path, const fs::path& directory) {
  const auto [dir_end, path_at] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return dir_end == directory.end() || (std::next(dir_end) == directory.end() && dir_end->empty());
}

// Not the first part of a split.
bool is_later_part(const fs::path& file) {
  const std::string stem = file.stem().string();
  const auto split = parse_split_name(stem);
  return split && split->part > 1;
}

// `file` and, of a split, its other parts.
Result<ModelFileSet> collect(const fs::path& file) {
  ModelFileSet set;
  const std::string stem = file.stem().string();
  const auto split = parse_split_name(stem);
  if (split && split->part != 1)
    return fail(Code::Unprocessable, fmt::format("{} is part {} of {}; name the first part",
                                                 file.string(), split->part, split->parts));
  const int parts = split ? split->parts : 1;
  for (int part = 1; part <= parts; ++part) {
    fs::path path = file;
    if (split)
      path = file.parent_path() /
             (make_split_name(split->base, part, parts) + file.extension().string());
    std::error_code failed;
    const auto bytes = fs::file_size(path, failed);
    if (failed && parts > 1)
      return fail(Code::Unprocessable,
                  fmt::format("part {} of {} is missing: {}", part, parts, path.string()));
    if (failed) return fail(Code::NotFound, fmt::format("{}: {}", path.string(), failed.message()));
    set.parts.push_back(path);
    set.bytes += static_cast<std::int64_t>(bytes);
  }
  set.first = set.parts.front();
  return set;
}

Result<ModelFileSet> only_model_in(const fs::path& directory) {
  std::error_code failed;
  std::vector<fs::path> found;
  std::size_t seen = 0;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (++seen > kEntriesMax) break;
    if (is_gguf(at->path()) && !is_later_part(at->path())) found.push_back(at->path());
  }
  if (failed)
    return fail(Code::NotFound, fmt::format("{}: {}", directory.string(), failed.message()));
  if (found.empty())
    return fail(
        Code::Unprocessable,
        fmt::format("{} has no .gguf file; name one, or another folder", directory.string()));
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    return fail(
        Code::Unprocessable,
        fmt::format("{} has {} models ({}, {}, …); name one file", directory.string(), found.size(),
                    found[0].filename().string(), found[1].filename().string()));
  }
  return collect(found.front());
}

// The name that was given decides, not a link's target: stores of blobs link "x.gguf" to a hash.
Result<ModelFileSet> one_file(const fs::path& file) {
  if (!is_gguf(file))
    return fail(
        Code::Unprocessable,
        fmt::format("{} is not a .gguf file; name one, or a folder that has it", file.string()));
  return collect(file);
}

Result<ModelFileSet> folder_at(const fs::path& directory) {
  std::error_code failed;
  ModelFileSet set;
  set.first = directory;
  std::size_t seen = 0;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (++seen > kEntriesMax) break;
    std::error_code gone;
    const auto bytes = fs::file_size(at->path(), gone);
    if (gone || at->path().extension() != ".safetensors") continue;
    set.parts.push_back(at->path());
    set.bytes += static_cast<std::int64_t>(bytes);
  }
  const fs::path config = directory / "config.json";
  if (failed || set.parts.empty() || !fs::is_regular_file(config, failed))
    return fail(Code::Unprocessable,
                fmt::format("{} is no model folder: it has no config.json and *.safetensors",
                            directory.string()));
  std::sort(set.parts.begin(), set.parts.end());
  set.parts.push_back(config);
  return set;
}

// Where a model lies, before it is looked at, and the folder that it must not lead out of; empty
// where an absolute path was named.
struct Place {
  fs::path path;
  fs::path root;
  Error leads_out;
  bool is_folder = false;

  // Nor may a part or a directory's file lead out.
  Result<ModelFileSet> keep_inside(Result<ModelFileSet> files) const {
    if (!files || root.empty()) return files;
    std::error_code failed;
    for (const fs::path& part : files->parts)
      if (!is_inside(fs::canonical(part, failed), root)) return fail(leads_out);
    return files;
  }
};

Result<Place> place_of(const std::string& model, const fs::path& models_dir) {
  if (model.empty() || model.find('\0') != std::string::npos)
    return fail(Code::InvalidArgument, "model must be a path");
  const fs::path named(model);
  if (named.is_relative() && models_dir.empty())
    return fail(
        Code::Unprocessable,
        fmt::format("model \"{}\" is relative and no models_dir is set; give an absolute path",
                    model));
  Place place;
  place.path = named.is_absolute() ? named : models_dir / named;
  std::error_code failed;
  const fs::path real = fs::canonical(place.path, failed);
  if (failed)
    return fail(Code::NotFound, fmt::format("{}: {}; give the path of a model that is there",
                                            place.path.string(), failed.message()));
  place.root = named.is_absolute() ? fs::path() : fs::canonical(models_dir, failed);
  place.leads_out =
      Error{.code = Code::PermissionDenied,
            .message = fmt::format("model \"{}\" leads out of {}", model, models_dir.string())};
  // Before the search too: what it does not find it tells by the names of files.
  if (!named.is_absolute() && (failed || !is_inside(real, place.root)))
    return fail(place.leads_out);
  place.is_folder = fs::is_directory(real, failed);
  return place;
}

struct Scanner {
  fs::path root;       // as given
  fs::path canonical;  // links resolved
  std::size_t limit = 0;
  std::size_t seen = 0;
  std::set<std::string> visited;  // canonical directories: links can make rings
  ModelScan scan;

  void visit(const fs::path& directory, int depth) {
    std::error_code failed;
    const fs::path real = fs::canonical(directory, failed);
    if (failed || !is_inside(real, canonical) || !visited.insert(real.string()).second) return;
    std::vector<fs::path> entries;
    for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
         at.increment(failed)) {
      if (++seen > kEntriesMax) {
        scan.truncated = true;
        break;
      }
      entries.push_back(at->path());
    }
    std::sort(entries.begin(), entries.end());
    // Where both lie our runner takes the .gguf.
    if (depth > 0 && std::none_of(entries.begin(), entries.end(), is_gguf)) add_folder(directory);
    for (const fs::path& entry : entries) {
      if (fs::is_directory(entry, failed)) {
        if (depth < kDepthMax) visit(entry, depth + 1);
      } else if (is_gguf(entry) && !is_later_part(entry)) {
        add_file(entry);
      }
    }
  }

  void add_file(const fs::path& file) {
    std::error_code failed;
    const fs::path real = fs::canonical(file, failed);
    if (failed || !is_inside(real, canonical)) return;
    if (auto files = collect(file)) add(file, std::move(*files), false);
  }

  void add_folder(const fs::path& directory) {
    auto files = folder_at(directory);
    if (!files) return;
    std::error_code failed;
    for (const fs::path& part : files->parts)
      if (!is_inside(fs::canonical(part, failed), canonical)) return;
    add(directory, std::move(*files), true);
  }

  void add(const fs::path& place, ModelFileSet files, bool folder) {
    if (scan.models.size() >= limit) {
      scan.truncated = true;
      return;
    }
    scan.models.push_back({.path = place.lexically_relative(root).string(),
                           .files = std::move(files),
                           .folder = folder});
  }
};

}  // namespace

Result<ModelFileSet> find_model(const std::string& model, const fs::path& models_dir) {
  const auto place = place_of(model, models_dir);
  if (!place) return fail(place.error());
  return place->keep_inside(place->is_folder ? only_model_in(place->path) : one_file(place->path));
}

Result<ModelFileSet> find_model_folder(const std::string& model, const fs::path& models_dir) {
  const auto place = place_of(model, models_dir);
  if (!place) return fail(place.error());
  if (!place->is_folder)
    return fail(Code::Unprocessable, fmt::format("{} is no folder", place->path.string()));
  return place->keep_inside(folder_at(place->path));
}

Result<ModelScan> scan_models(const fs::path& models_dir, std::size_t limit) {
  std::error_code failed;
  Scanner scanner;
  scanner.root = models_dir;
  scanner.limit = limit;
  scanner.canonical = fs::canonical(models_dir, failed);
  if (failed)
    return fail(Code::NotFound, fmt::format("{}: {}", models_dir.string(), failed.message()));
  scanner.visit(models_dir, 0);
  std::ranges::sort(scanner.scan.models, {}, &FoundModel::path);
  return std::move(scanner.scan);
}

}  // namespace flotilla::model
