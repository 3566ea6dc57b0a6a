#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "base/result.h"

// JSON from outside, with hard limits, and readers whose errors name the field, its value and what
// would do. For the .cpp files of api/ and for tests: Boost.JSON's types are in no other header.
namespace flotilla::api::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;

struct Limits {
  std::size_t bytes_max = 32 << 20;
  std::size_t depth_max = 64;
  // Values, and names of members, of all lists and objects together: what a text's tree takes is
  // 20 to 100 bytes for each, whatever few bytes they are in the text.
  std::size_t values_max = 1'200'000;
};

// One JSON text (RFC 8259). Refused beyond it: duplicate keys, U+0000 in a string, numbers that no
// double holds. InvalidArgument says what and where; TooLarge: bytes_max or values_max is passed.
Result<Value> parse(std::string_view text, const Limits& limits = {});
// As parse, and the text must be an object.
Result<Object> parse_object(std::string_view text, const Limits& limits = {});

// The first thing wrong in a text; later ones are dropped.
class Fault {
 public:
  // `field`: its path, "messages[2].content"; becomes Error::param.
  void set(std::string field, std::string message, std::string reason = {});
  explicit operator bool() const { return error_.has_value(); }
  // After something was set.
  std::unexpected<Error> unexpected() const;

 private:
  std::optional<Error> error_;
};

// Reads an object's members by name. Absent and null are both "unset". A member of the wrong type
// or out of range sets the fault and reads as unset, so a caller reads all it wants and looks once
// at the end. Object and Fault must outlive the Reader.
class Reader {
 public:
  Reader(const Object& object, Fault& fault, std::string path = {});

  std::optional<std::string> string(std::string_view name, std::size_t bytes_max = 1 << 20);
  // A number without fraction in [min, max]; 4.0 is one.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<bool> boolean(std::string_view name);
  const Array* array(std::string_view name, std::size_t items_max);
  const Object* object(std::string_view name);
  // One of `choices`.
  std::optional<std::string> choice(std::string_view name,
                                    std::initializer_list<std::string_view> choices);
  // Any type; nullptr when unset.
  const Value* find(std::string_view name);

  // Sets the fault when an unset member is needed; `what` says what it should be.
  void require(std::string_view name, std::string_view what);
  // `must`: "must be …". The value is named after the field, but for a secret's.
  void refuse(std::string_view name, std::string_view must);
  // Sets the fault when the object has a member that no call above asked for.
  void refuse_unknown();

  std::string path_of(std::string_view name) const;
  Fault& fault() { return fault_; }

 private:
  const Object& object_;
  Fault& fault_;
  std::string path_;
  std::vector<std::string_view> asked_;
};

// "path[3]"
std::string item_path(std::string_view path, std::size_t index);
// `value` as JSON, cut to fit a message.
std::string shown(const Value& value);
std::string to_text(const Value& value);
// What of an object's members is named, in that order.
void keep_only(Object& object, std::initializer_list<std::string_view> names);

}  // namespace flotilla::api::json
