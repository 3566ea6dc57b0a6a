#pragma once

#include "api/agent_frames.h"
#include "model/model_files.h"

namespace flotilla::agent {

// What a start's model is on this machine, and who is to serve it.
struct ServedModel {
  model::ModelFileSet files = {};  // `first` is what the engine is given
  bool by_engine = false;          // the spec's, not our runner
  bool by_name = false;            // that engine finds the model itself: `first` is no path
  bool folder = false;             // config.json and *.safetensors
};

// Blocks on the disk. An error names the path; of a folder that nothing here can serve it says so.
Result<ServedModel> find_served(const api::RunnerSpec& spec);

}  // namespace flotilla::agent
