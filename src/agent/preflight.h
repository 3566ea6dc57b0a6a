#pragma once

#include <vector>

#include "api/agent_frames.h"

// What a machine can say about models without loading one. Both block on the disk.
namespace flotilla::agent {

// Where the spec names devices that are among `gpus`, what is free is theirs. What the runners of
// these pids were given and have not touched yet is not free.
api::PreflightAnswer answer_preflight(const api::Preflight& question,
                                      const std::vector<api::GpuTelemetry>& gpus = {},
                                      const std::vector<int>& runners = {});
api::ModelList answer_list_models(const api::ListModels& question);

}  // namespace flotilla::agent
