#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/answer_form.h"

namespace flotilla::forms {

// Answers that a later request may go on from or ask for, in memory: those used longest ago go
// first, and a restart forgets all. Each belongs to who asked for it, and nobody else sees it. I/O
// thread only.
class ResponseStore {
 public:
  static constexpr std::size_t kBytesMax = 64 << 20;
  static constexpr std::size_t kEntriesMax = 10'000;

  explicit ResponseStore(std::size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  void put(std::string_view owner, api::KeptAnswer answer);
  // Valid until the next call that changes anything; nullptr: not there, or another's.
  const api::KeptAnswer* find(std::string_view owner, std::string_view id);
  bool erase(std::string_view owner, std::string_view id);

  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return index_.size(); }

 private:
  struct Entry {
    std::string owner;
    api::KeptAnswer answer;
  };
  using Entries = std::list<Entry>;  // the one used last comes first
  static std::size_t size_of(const Entry& entry);
  void remove(Entries::iterator at);

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> index_;  // by the entry's own id
};

}  // namespace flotilla::forms
