#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "http/exchange.h"

namespace flotilla::http {

// What a request's body counts in the server's sum, in its network's and in its key's, as long as
// it is there: handlers keep bodies until they have answered.
//
// A key's counts a body from its head on, by the length that it names, so that one too many is
// refused before it comes. The other two count the bytes that came: by promises alone two addresses
// could fill them.
class BodyShare {
 public:
  enum class Room { There, NoneOfKey, None };

  // `key`: BodyPermit::key.
  BodyShare(std::shared_ptr<ServerCore> core, const Request& request, std::string key);
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // A body that is not small has to find room: one of so many bytes will come.
  Room expect(std::size_t bytes);
  // So many bytes are there.
  Room hold(std::size_t bytes);

 private:
  // One body's part of a sum, for as long as it lives.
  class Part {
   public:
    Part(std::map<std::string, std::int64_t>& sums, std::string name);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    // The sum, if this part has changed; else 0, as where nobody is named.
    std::int64_t set(std::int64_t bytes);
    std::int64_t bytes() const { return bytes_; }

   private:
    std::map<std::string, std::int64_t>& sums_;
    const std::string name_;
    std::int64_t bytes_ = 0;
  };

  bool is_small(std::size_t bytes) const;

  const std::shared_ptr<ServerCore> core_;
  Part of_all_;
  Part of_network_;  // of nobody: only we reach the server there
  Part of_key_;
};

}  // namespace flotilla::http
