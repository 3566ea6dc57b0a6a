#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "http/exchange.h"

namespace flotilla::http {

// What a request's body counts in the server's sum and in its network's, as long as it is there:
// handlers keep bodies until they have answered.
class BodyShare {
 public:
  BodyShare(std::shared_ptr<ServerCore> core, const Request& request);
  ~BodyShare();
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // false: it is not small, and a sum is over its bound.
  bool set(std::size_t bytes);

 private:
  const std::shared_ptr<ServerCore> core_;
  const std::string of_;  // empty: nobody but us reaches it
  std::int64_t bytes_ = 0;
};

}  // namespace flotilla::http
