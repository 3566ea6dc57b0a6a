#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_form.h"
#include "api/json.h"

// Items of stored answers: what they were asked, and what they said.
namespace flotilla::api {

// An answer's input as it was sent, each item with a type and an id.
json::Array input_items(const KeptAnswer& kept);

// What a request's input names in place of an item: {"type":"item_reference","id":…}, whose type
// may be left out.
bool is_item_reference(const json::Object& item);

// Reads the references of one input. Which answer has an item is told by the item's id; the answers
// themselves come from whoever keeps them, for the input to be read again.
class StoredItems {
 public:
  // nullptr: nobody was asked for the answers. They are looked at here alone.
  explicit StoredItems(const std::vector<KeptAnswer>* answers);

  // The item that a reference names. nullptr: the fault is set, or its answer is among needs().
  const json::Object* find(const json::Object& reference, const std::string& path,
                           json::Fault& fault);
  // Ids of the answers that were not there, each once.
  const std::vector<std::string>& needs() const { return needs_; }

 private:
  void add(json::Array items);

  const bool asked_;
  std::map<std::string, json::Object, std::less<>> items_;
  std::set<std::string> named_;
  std::vector<std::string> needs_;
};

}  // namespace flotilla::api
