#include "model/model_place.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

namespace flotilla::model {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& root) {
  const auto [root_end, path_at] =
      std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return root_end == root.end();
}

Result<void> check_name(const std::string& path) {
  const fs::path named(path);
  const bool steps_aside = std::ranges::any_of(
      named, [](const fs::path& step) { return step == ".." || step == "." || step.empty(); });
  if (path.empty() || path.find('\0') != std::string::npos || named.is_absolute() || steps_aside)
    return fail(Code::InvalidArgument,
                fmt::format("\"{}\" is no path inside a models folder: it must be relative and "
                            "have no \"..\"",
                            path));
  if (named.extension() != ".gguf" && named.extension() != ".GGUF")
    return fail(Code::InvalidArgument, fmt::format("\"{}\" is no .gguf file", path));
  return {};
}

}  // namespace

Result<fs::path> place_for(const std::string& path, const fs::path& models_dir, Folders folders) {
  if (auto good = check_name(path); !good) return fail(good.error());
  std::error_code failed;
  const fs::path root = fs::canonical(models_dir, failed);
  if (failed || !fs::is_directory(root, failed))
    return fail(Code::NotFound,
                fmt::format("there is no models folder {}; make it, or set models_dir",
                            models_dir.string()));
  const auto leads_out = [&](const fs::path& at) {
    return fail(Code::PermissionDenied,
                fmt::format("{} leads out of {}", at.string(), models_dir.string()));
  };
  fs::path folder = root;
  for (const fs::path& step : fs::path(path).parent_path()) {
    folder /= step;
    if (fs::symlink_status(folder, failed).type() == fs::file_type::not_found) {
      if (folders == Folders::AsTheyAre) continue;
      if (!fs::create_directory(folder, failed) && failed)
        return fail(Code::PermissionDenied,
                    fmt::format("{} cannot be made: {}", folder.string(), failed.message()));
    }
    const fs::path real = fs::canonical(folder, failed);
    if (failed || !is_inside(real, root)) return leads_out(folder);
  }
  fs::path place = folder / fs::path(path).filename();
  if (fs::is_symlink(place, failed)) {
    const fs::path real = fs::canonical(place, failed);
    if (failed || !is_inside(real, root)) return leads_out(place);
  }
  return place;
}

fs::path part_file(const fs::path& place) {
  return place.parent_path() / ("." + place.filename().string() + ".part");
}

}  // namespace flotilla::model
