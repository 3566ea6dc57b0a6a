#pragma once

#include <chrono>

#include "api/foreign.h"
#include "base/task.h"
#include "cluster/status.h"
#include "http/client.h"

namespace flotilla::gateway {

// Asks an engine that is not ours whether it serves, and finds out what it is. One thread.
class EngineProbe {
 public:
  // `client`: of its API's base. Both outlive the probe; what it finds out goes into `engine`.
  EngineProbe(Executor executor, http::Client& client, api::ForeignEngine& engine);

  // It answers at its health check or lists its models. Error::reason "connect": nobody is there;
  // "key": it wants one, or another; "path": what is asked is not there; "model": it is named wrong
  // or not at all.
  Task<void> health();
  // It has answered a request for one token and, for a width above 1, two at the same time: whole,
  // else its width is 1 and the reason is told.
  Task<cluster::ReplicaInfo> meet(int width);

 private:
  Task<void> list_models();
  Task<void> answers(std::string text, int tokens);
  Awaitable<Result<void>> answers_two();
  http::Request request(std::string method, std::string target) const;

  Executor executor_;
  http::Client& client_;
  http::Client root_;  // where health checks are
  api::ForeignEngine& engine_;
};

}  // namespace flotilla::gateway
