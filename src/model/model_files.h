#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace flotilla::model {

// One model's files: a .gguf, or all parts of a split in order.
struct ModelFileSet {
  std::filesystem::path first;  // what the engine is given
  std::vector<std::filesystem::path> parts;
  std::int64_t bytes = 0;
};

// Where `model` (absolute, or relative to models_dir) lies: a .gguf, the first part of a split with
// all its other parts there, or a directory with exactly one such model. A relative path may not
// leave models_dir, links resolved. NotFound / Unprocessable / PermissionDenied name the path.
Result<ModelFileSet> find_model(const std::string& model, const std::filesystem::path& models_dir);

// A model folder as other engines take it: `model` names a directory with config.json and
// *.safetensors, which are the parts; `first` is the directory. The rules of find_model hold.
Result<ModelFileSet> find_model_folder(const std::string& model,
                                       const std::filesystem::path& models_dir);

struct FoundModel {
  std::string path;  // relative to models_dir
  ModelFileSet files;
  bool folder = false;  // as find_model_folder finds it, in which no .gguf lies
};
struct ModelScan {
  std::vector<FoundModel> models;  // by path
  bool truncated = false;          // `limit` was reached
};

// Every model and model folder below models_dir, at most `limit` and 8 directories deep. Links that
// lead out of it and what cannot be read are left out. Blocks on the disk.
Result<ModelScan> scan_models(const std::filesystem::path& models_dir, std::size_t limit);

}  // namespace flotilla::model
