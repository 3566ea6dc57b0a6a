#include "forms/response_store.h"

namespace flotilla::forms {

std::size_t ResponseStore::size_of(const Entry& entry) {
  constexpr std::size_t kOverhead = 256;
  const api::KeptAnswer& answer = entry.answer;
  return kOverhead + entry.owner.size() + answer.id.size() + answer.messages.size() +
         answer.body.size() + answer.input.size();
}

void ResponseStore::remove(Entries::iterator at) {
  bytes_ -= size_of(*at);
  index_.erase(at->answer.id);
  entries_.erase(at);
}

void ResponseStore::put(std::string_view owner, api::KeptAnswer answer) {
  if (const auto found = index_.find(answer.id); found != index_.end()) remove(found->second);
  entries_.push_front({.owner = std::string(owner), .answer = std::move(answer)});
  index_.emplace(entries_.front().answer.id, entries_.begin());
  bytes_ += size_of(entries_.front());
  while (!entries_.empty() && (bytes_ > bytes_max_ || entries_.size() > kEntriesMax))
    remove(std::prev(entries_.end()));
}

const api::KeptAnswer* ResponseStore::find(std::string_view owner, std::string_view id) {
  const auto found = index_.find(id);
  if (found == index_.end() || found->second->owner != owner) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->answer;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const auto found = index_.find(id);
  if (found == index_.end() || found->second->owner != owner) return false;
  remove(found->second);
  return true;
}

}  // namespace flotilla::forms
