#pragma once

#include <string>
#include <string_view>

#include "api/json.h"

// What a JSON schema says of strings and numbers: the parts of it that hold no other schema.
namespace flotilla::api::schema {

// What is wrong with a schema, or cannot be held.
class Objections {
 public:
  // `strict`: what cannot be held is refused by name, else left out.
  Objections(json::Fault& fault, bool strict) : fault_(fault), strict_(strict) {}

  // Sets the fault; the null that stands for the schema then.
  json::Value refuse(const std::string& path, const std::string& what);
  bool strict() const { return strict_; }
  void leave_out(const std::string& path, std::string_view word, const std::string& why = {});

 private:
  json::Fault& fault_;
  bool strict_;
};

// Each gives the schema in the words that a grammar can be made of.
json::Value string_leaf(const json::Object& object, const std::string& path, Objections& faults);
json::Value integer_leaf(const json::Object& object, const std::string& path, Objections& faults);
json::Value number_leaf(const json::Object& object, const std::string& path, Objections& faults);

// Copies the counts named `least` and `most` to `made`; they must not cross, nor pass 1,000.
void counts(const json::Object& object, std::string_view least, std::string_view most,
            const std::string& path, json::Object& made, Objections& faults);

}  // namespace flotilla::api::schema
