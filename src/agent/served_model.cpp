#include "agent/served_model.h"

#include <fmt/format.h>

#include "api/engine_template.h"

namespace flotilla::agent {

Result<ServedModel> find_served(const api::RunnerSpec& spec) {
  ServedModel out;
  if (spec.synthetic) return out;
  const bool engine_asked = spec.engine && !spec.engine->folders_only;
  if (engine_asked && spec.engine->model_by_name) {
    // It becomes a word of a command line.
    if (spec.model.empty() || spec.model.front() == '-' ||
        api::has_control_characters(spec.model)) {
      return fail(Code::InvalidArgument,
                  fmt::format("model: this is no name that {} may be given; a name is not empty, "
                              "does not begin with - and has no control characters",
                              spec.engine->name));
    }
    out.by_engine = out.by_name = true;
    out.files.first = spec.model;
    return out;
  }
  auto file = model::find_model(spec.model, spec.models_dir);
  auto folder = engine_asked || !file ? model::find_model_folder(spec.model, spec.models_dir)
                                      : Result<model::ModelFileSet>(fail(Code::NotFound, ""));
  if (folder) {
    out.files = std::move(*folder);
    out.by_engine = spec.engine.has_value();
    out.folder = true;
    return out;
  }
  if (!file) return fail(file.error());
  out.files = std::move(*file);
  out.by_engine = engine_asked;
  return out;
}

}  // namespace flotilla::agent
