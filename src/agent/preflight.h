#pragma once

#include "api/agent_frames.h"

// What a machine can say about models without loading one. Both block on the disk.
namespace flotilla::agent {

api::PreflightAnswer answer_preflight(const api::Preflight& question);
api::ModelList answer_list_models(const api::ListModels& question);

}  // namespace flotilla::agent
