#include "forms/response_store.h"

#include <algorithm>

namespace flotilla::forms {

std::size_t ResponseStore::size_of(const api::KeptAnswer& answer) {
  constexpr std::size_t kOverhead = 256;
  return kOverhead + answer.id.size() + answer.messages.size() + answer.body.size() +
         answer.input.size();
}

// By value: with the answer its place in the index goes.
void ResponseStore::remove(Place place) {
  Owner& owner = place.owner->second;
  const std::size_t bytes = size_of(*place.answer);
  bytes_ -= bytes;
  owner.bytes -= bytes;
  index_.erase(place.answer->id);
  owner.answers.erase(place.answer);
  if (owner.answers.empty()) owners_.erase(place.owner);
}

void ResponseStore::make_room() {
  while (bytes_ > bytes_max_ || index_.size() > kEntriesMax) {
    const bool by_bytes = bytes_ > bytes_max_;
    const auto has = [by_bytes](const Owners::value_type& one) {
      return by_bytes ? one.second.bytes : one.second.answers.size();
    };
    const auto most = std::ranges::max_element(owners_, {}, has);
    remove({.owner = most, .answer = std::prev(most->second.answers.end())});
  }
}

void ResponseStore::put(std::string_view owner, api::KeptAnswer answer) {
  if (const auto found = index_.find(answer.id); found != index_.end()) remove(found->second);
  const std::size_t bytes = size_of(answer);
  if (bytes > bytes_max_) return;
  const auto of = owners_.try_emplace(std::string(owner)).first;
  of->second.answers.push_front(std::move(answer));
  of->second.bytes += bytes;
  bytes_ += bytes;
  const auto first = of->second.answers.begin();
  index_.emplace(first->id, Place{.owner = of, .answer = first});
  make_room();
}

const ResponseStore::Place* ResponseStore::find_place(std::string_view owner,
                                                      std::string_view id) const {
  const auto found = index_.find(id);
  return found == index_.end() || found->second.owner->first != owner ? nullptr : &found->second;
}

const api::KeptAnswer* ResponseStore::find(std::string_view owner, std::string_view id) {
  const Place* place = find_place(owner, id);
  if (place == nullptr) return nullptr;
  Answers& answers = place->owner->second.answers;
  answers.splice(answers.begin(), answers, place->answer);
  return &*place->answer;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const Place* place = find_place(owner, id);
  if (place == nullptr) return false;
  remove(*place);
  return true;
}

}  // namespace flotilla::forms
