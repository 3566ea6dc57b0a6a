#include "api/json.h"

// The one unit that compiles Boost.JSON; everyone else sees declarations.
#include <algorithm>
#include <cmath>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#include <fmt/format.h>

#include "api/json_answer.h"
#include "api/json_text.h"
#include "base/nearest.h"

namespace flotilla::api::json {
namespace {

enum class Refusal { None, DuplicateKey, Nul, NotFinite, TooMany };

// Builds the value and refuses what Boost's own handler lets through.
struct Handler {
  static constexpr std::size_t max_object_size = Object::max_size();
  static constexpr std::size_t max_array_size = Array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  boost::json::value_stack stack;
  bool nul = false;
  std::size_t left = 0;                        // values that it may have yet
  std::vector<std::vector<std::string>> keys;  // of each open object, outermost first
  std::string key;
  Refusal refusal = Refusal::None;
  std::string refused;

  using Error = boost::json::error_code;
  using Text = boost::json::string_view;

  bool refuse(Refusal why, std::string what, Error& ec) {
    refusal = why;
    refused = std::move(what);
    ec = boost::json::error::syntax;
    return false;
  }
  bool check_text(Text text, Error& ec) {
    return nul || text.find('\0') == Text::npos || refuse(Refusal::Nul, {}, ec);
  }

  bool count(Error& ec) {
    if (left == 0) return refuse(Refusal::TooMany, {}, ec);
    --left;
    return true;
  }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error& ec) {
    if (!count(ec)) return false;
    keys.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t n, Error& ec) {
    auto& names = keys.back();
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return refuse(Refusal::DuplicateKey, *twice, ec);
    keys.pop_back();
    stack.push_object(n);
    return true;
  }
  bool on_array_begin(Error& ec) { return count(ec); }
  bool on_array_end(std::size_t n, Error&) {
    stack.push_array(n);
    return true;
  }
  bool on_key_part(Text text, std::size_t, Error& ec) {
    if (!check_text(text, ec)) return false;
    key.append(text.data(), text.size());
    stack.push_chars(text);
    return true;
  }
  bool on_key(Text text, std::size_t, Error& ec) {
    if (!check_text(text, ec) || !count(ec)) return false;
    key.append(text.data(), text.size());
    keys.back().push_back(std::move(key));
    key.clear();
    stack.push_key(text);
    return true;
  }
  bool on_string_part(Text text, std::size_t, Error& ec) {
    if (!check_text(text, ec)) return false;
    stack.push_chars(text);
    return true;
  }
  bool on_string(Text text, std::size_t, Error& ec) {
    if (!check_text(text, ec) || !count(ec)) return false;
    stack.push_string(text);
    return true;
  }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t number, Text, Error& ec) {
    if (!count(ec)) return false;
    stack.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, Text, Error& ec) {
    if (!count(ec)) return false;
    stack.push_uint64(number);
    return true;
  }
  bool on_double(double number, Text text, Error& ec) {
    if (!std::isfinite(number)) {
      return refuse(Refusal::NotFinite, std::string(text.data(), text.size()), ec);
    }
    if (!count(ec)) return false;
    stack.push_double(number);
    return true;
  }
  bool on_bool(bool yes, Error& ec) {
    if (!count(ec)) return false;
    stack.push_bool(yes);
    return true;
  }
  bool on_null(Error& ec) {
    if (!count(ec)) return false;
    stack.push_null();
    return true;
  }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

std::string describe(const Handler& handler, boost::json::error_code ec, std::size_t at,
                     const Limits& limits) {
  switch (handler.refusal) {
    case Refusal::DuplicateKey:
      return fmt::format("key {} appears twice in one object; send it once",
                         json_string(handler.refused.substr(0, 100)));
    case Refusal::Nul: return fmt::format("a string has U+0000 near byte {}; remove it", at);
    case Refusal::NotFinite:
      return fmt::format("number {} near byte {} is out of range", handler.refused.substr(0, 40),
                         at);
    case Refusal::TooMany:
      return fmt::format(
          "the JSON has more than {} values (items of lists, members and their "
          "names); send less at once",
          limits.values_max);
    case Refusal::None: break;
  }
  if (ec == boost::json::error::too_deep) {
    return fmt::format("the JSON is nested deeper than {} levels", limits.depth_max);
  }
  if (ec == boost::json::error::incomplete) {
    return fmt::format("the JSON ends at byte {} before it is complete", at);
  }
  return fmt::format("not valid JSON near byte {}: {}", at, ec.message());
}

std::string number_text(double value) { return fmt::format("{}", value); }

Result<Value> parse_text(std::string_view text, const Limits& limits, bool nul) {
  if (text.size() > limits.bytes_max) {
    return fail(Code::TooLarge, fmt::format("the JSON has {} bytes; at most {} are taken",
                                            text.size(), limits.bytes_max));
  }
  boost::json::parse_options options;
  options.max_depth = limits.depth_max;
  boost::json::basic_parser<Handler> parser(options);
  Handler& handler = parser.handler();
  handler.stack.reset();
  handler.nul = nul;
  handler.left = limits.values_max;
  boost::json::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = boost::json::error::extra_data;
  if (ec) {
    const bool too_large = handler.refusal == Refusal::TooMany;
    return fail(too_large ? Code::TooLarge : Code::InvalidArgument,
                describe(handler, ec, used, limits));
  }
  return handler.stack.release();
}

namespace {

// Errors are shown to many and kept: these fields' values are in none.
bool is_secret(std::string_view name) {
  constexpr std::string_view names[] = {"api_key", "token", "secret", "password"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

Result<Object> parse_object_text(std::string_view text, const Limits& limits, bool nul) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(Code::InvalidArgument, "the body is empty; send a JSON object");
  }
  auto value = parse_text(text, limits, nul);
  if (!value) return fail(value.error());
  if (!value->is_object()) {
    return fail(Code::InvalidArgument,
                fmt::format("the body is {}; send a JSON object", shown(*value)));
  }
  return std::move(value->get_object());
}

}  // namespace

Result<Value> parse(std::string_view text, const Limits& limits) {
  return parse_text(text, limits, false);
}
Result<Object> parse_object(std::string_view text, const Limits& limits) {
  return parse_object_text(text, limits, false);
}
Result<Value> parse_answer(std::string_view text) { return parse_text(text, {}, true); }
Result<Object> parse_answer_object(std::string_view text) {
  return parse_object_text(text, {}, true);
}

void Fault::set(std::string field, std::string message, std::string reason) {
  if (error_) return;
  error_ = Error{.code = Code::InvalidArgument,
                 .message = std::move(message),
                 .param = std::move(field),
                 .reason = std::move(reason)};
}

std::unexpected<Error> Fault::unexpected() const { return fail(error_.value_or(Error{})); }

Reader::Reader(const Object& object, Fault& fault, std::string path)
    : object_(object), fault_(fault), path_(std::move(path)) {}

const Value* Reader::find(std::string_view name) {
  asked_.push_back(name);
  const Value* value = object_.if_contains(boost::json::string_view(name.data(), name.size()));
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::string Reader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Reader::refuse(std::string_view name, std::string_view must) {
  const Value* value = find(name);
  const std::string is = value == nullptr  ? "missing"
                         : is_secret(name) ? "something else (its value is not shown)"
                                           : shown(*value);
  fault_.set(path_of(name), fmt::format("{} is {}; it {}", path_of(name), is, must));
}

void Reader::require(std::string_view name, std::string_view what) {
  if (find(name) != nullptr) return;
  fault_.set(path_of(name), fmt::format("{} is missing; it must be {}", path_of(name), what));
}

std::optional<std::string> Reader::string(std::string_view name, std::size_t bytes_max) {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    refuse(name, "must be a string");
    return std::nullopt;
  }
  const auto& text = value->get_string();
  if (text.size() > bytes_max) {
    fault_.set(path_of(name), fmt::format("{} has {} bytes; at most {} are taken", path_of(name),
                                          text.size(), bytes_max));
    return std::nullopt;
  }
  return std::string(text.data(), text.size());
}

std::optional<std::int64_t> Reader::integer(std::string_view name, std::int64_t min,
                                            std::int64_t max) {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::optional<std::int64_t> number;
  if (value->is_int64()) {
    number = value->get_int64();
  } else if (value->is_double()) {
    // Below 2^53 a double that equals its floor is that integer.
    const double d = value->get_double();
    if (std::floor(d) == d && std::abs(d) <= 9007199254740992.0) {
      number = static_cast<std::int64_t>(d);
    }
  }
  if (number && *number >= min && *number <= max) return number;
  refuse(name, max == INT64_MAX || max == INT32_MAX
                   ? fmt::format("must be an integer of at least {}", min)
                   : fmt::format("must be an integer from {} to {}", min, max));
  return std::nullopt;
}

std::optional<double> Reader::number(std::string_view name, double min, double max) {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->to_number<double>();
    if (number >= min && number <= max) return number;
  }
  refuse(name, fmt::format("must be a number from {} to {}", number_text(min), number_text(max)));
  return std::nullopt;
}

std::optional<bool> Reader::boolean(std::string_view name) {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  refuse(name, "must be true or false");
  return std::nullopt;
}

const Array* Reader::array(std::string_view name, std::size_t items_max) {
  const Value* value = find(name);
  if (value == nullptr) return nullptr;
  const Array* items = value->if_array();
  if (items == nullptr) {
    refuse(name, "must be a list");
    return nullptr;
  }
  if (items->size() > items_max) {
    fault_.set(path_of(name), fmt::format("{} has {} items; at most {} are taken", path_of(name),
                                          items->size(), items_max));
    return nullptr;
  }
  return items;
}

const Object* Reader::object(std::string_view name) {
  const Value* value = find(name);
  if (value == nullptr) return nullptr;
  if (const Object* object = value->if_object()) return object;
  refuse(name, "must be an object");
  return nullptr;
}

std::optional<std::string> Reader::choice(std::string_view name,
                                          std::initializer_list<std::string_view> choices) {
  const Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::string list;
  for (const std::string_view choice : choices) {
    if (value->is_string() && value->get_string() == choice) return std::string(choice);
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  refuse(name, fmt::format("must be one of: {}", list));
  return std::nullopt;
}

void Reader::refuse_unknown() {
  for (const auto& member : object_) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    std::string known;
    for (const std::string_view asked : asked_) {
      if (known.find(asked) == std::string::npos) {
        known += (known.empty() ? "" : ", ") + std::string(asked);
      }
    }
    const std::string field = path_of(name.substr(0, 100));
    fault_.set(field, fmt::format("{} is not a field here;{} known are: {}", field,
                                  did_you_mean(name, asked_), known));
    return;
  }
}

std::string item_path(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

std::string shown(const Value& value) {
  constexpr std::size_t kShownMax = 80;
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.get_array().empty() ? "an empty list" : "a list";
  std::string text = value.is_double() ? number_text(value.get_double()) : to_text(value);
  if (text.size() <= kShownMax) return text;
  std::size_t cut = kShownMax;  // not inside a character
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return text.substr(0, cut) + "…";
}

void keep_only(Object& object, std::initializer_list<std::string_view> names) {
  Object kept(object.storage());
  for (const std::string_view name : names) {
    Value* value = object.if_contains({name.data(), name.size()});
    if (value != nullptr)
      kept.emplace(boost::json::string_view(name.data(), name.size()), std::move(*value));
  }
  object = std::move(kept);
}

std::string to_text(const Value& value) { return boost::json::serialize(value); }

}  // namespace flotilla::api::json
