#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/answer_form.h"

namespace flotilla::forms {

// Answers that a later request may go on from or ask for, in memory; a restart forgets all. Each
// belongs to who asked for it, and nobody else sees it. Where there is no room for more, who has
// most gives way, by what was used longest ago: nobody loses answers to who keeps more. I/O thread
// only.
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
  using Answers = std::list<api::KeptAnswer>;  // the one used last comes first
  struct Owner {
    Answers answers;
    std::size_t bytes = 0;
  };
  using Owners = std::map<std::string, Owner, std::less<>>;
  struct Place {
    Owners::iterator owner;
    Answers::iterator answer;
  };
  static std::size_t size_of(const api::KeptAnswer& answer);
  const Place* find_place(std::string_view owner, std::string_view id) const;
  void remove(Place place);
  void make_room();

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Owners owners_;                                      // those that have answers
  std::unordered_map<std::string_view, Place> index_;  // by the answer's own id
};

}  // namespace flotilla::forms
