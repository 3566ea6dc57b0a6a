#include "api/schema_leaves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "api/schema_numbers.h"
#include "api/schema_pattern.h"
#include "api/schema_words.h"
#include "base/rule_mark.h"

namespace flotilla::api::schema {
namespace {

constexpr std::int64_t kRepetitionMax = 1000;
constexpr double kBoundMax = 1e15;  // whole numbers that a double and the rules agree on

// Formats that are patterns; narrower than their standards, so that all that is written is right.
// Empty: not one of them.
std::string_view pattern_of_format(std::string_view format) {
  if (format == "email")
    return R"(^[a-z0-9]{1,32}(\.[a-z0-9]{1,16}){0,2}@([a-z0-9]{1,32}\.){1,3}[a-z]{2,8}$)";
  if (format == "hostname") return R"(^([a-z0-9]{1,32}\.){0,4}[a-z]{2,16}$)";
  if (format == "ipv4") {
    return R"(^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$)";
  }
  return {};
}

// A count of something that is repeated. -1: absent, or left out.
std::int64_t count(const json::Object& object, std::string_view word, const std::string& path,
                   Objections& faults) {
  const json::Value* value = find(object, word);
  if (value == nullptr) return -1;
  if (!value->is_int64() || value->get_int64() < 0) {
    faults.refuse(fmt::format("{}.{}", path, word),
                  fmt::format("is {}; it must be a whole number", json::shown(*value)));
    return -1;
  }
  if (value->get_int64() > kRepetitionMax) {
    faults.leave_out(
        path, word,
        fmt::format("is {}; at most {} is supported", value->get_int64(), kRepetitionMax));
    return -1;
  }
  return value->get_int64();
}

std::optional<double> bound(const json::Object& object, std::string_view word,
                            const std::string& path, Objections& faults) {
  const json::Value* value = find(object, word);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->to_number<double>() : INFINITY;
  if (std::abs(number) <= kBoundMax) return number;
  faults.leave_out(path, word,
                   fmt::format("is {}; it must be a number within 1e15", json::shown(*value)));
  return std::nullopt;
}

constexpr std::int64_t kMultiplesMax = 500;

// All multiples of a whole number between two bounds; none: they are none, or too many.
std::optional<json::Object> multiples(const json::Value& of, std::optional<double> low,
                                      std::optional<double> high) {
  if (!of.is_int64() || of.get_int64() <= 0 || !low || !high) return std::nullopt;
  const std::int64_t step = of.get_int64();
  const auto last = static_cast<std::int64_t>(*high);
  auto at = static_cast<std::int64_t>(std::ceil(*low / static_cast<double>(step))) * step;
  if (last < at || (last - at) / step >= kMultiplesMax) return std::nullopt;
  json::Array values;
  for (; at <= last; at += step) values.push_back(at);
  return json::Object{{"enum", std::move(values)}};
}

// A bound of numbers with fractions.
struct Bound {
  Decimal value;
  bool exclusive = false;
};
struct BoundWord {
  std::string_view word;
  bool exclusive = false;
  bool is_low = false;
};

// The narrower of what was there and what the schema says.
void take_bound(const json::Object& object, const BoundWord& what, const std::string& path,
                std::optional<Bound>& held, Objections& faults) {
  const auto number = bound(object, what.word, path, faults);
  if (!number) return;
  const auto decimal = decimal_of(*number);
  if (!decimal) {
    faults.leave_out(path, what.word, "has more digits than are supported");
    return;
  }
  if (held) {
    const auto value =
        static_cast<double>(held->value.digits) / std::pow(10.0, held->value.decimals);
    const bool wider = what.is_low ? *number < value : *number > value;
    if (wider) return;
  }
  held = Bound{.value = *decimal, .exclusive = what.exclusive};
}

// As many decimals as the bounds have, six at least, while all digits fit.
std::optional<DecimalRange> range_of(const std::optional<Bound>& low,
                                     const std::optional<Bound>& high) {
  constexpr int kDecimals = 6;
  constexpr int kDigits = 18;
  int decimals = kDecimals;
  for (const auto* one : {&low, &high}) {
    if (*one) decimals = std::max(decimals, (*one)->value.decimals);
  }
  // Where one side is open it ends with the digits.
  std::int64_t most = 1;
  for (int i = 0; i < kDigits; ++i) most *= 10;
  DecimalRange range{.low = 1 - most, .high = most - 1, .decimals = decimals};
  if (low) {
    const auto at = scaled(low->value, decimals);
    if (!at) return std::nullopt;
    range.low = *at + (low->exclusive ? 1 : 0);
  }
  if (high) {
    const auto at = scaled(high->value, decimals);
    if (!at) return std::nullopt;
    range.high = *at - (high->exclusive ? 1 : 0);
  }
  return range;
}

}  // namespace

json::Value Objections::refuse(const std::string& path, const std::string& what) {
  fault_.set(path, fmt::format("{} {}", path, what), "invalid_schema");
  return {};
}

void Objections::leave_out(const std::string& path, std::string_view word, const std::string& why) {
  if (!strict_) return;
  refuse(fmt::format("{}.{}", path, word), why.empty() ? "is not supported; leave it out" : why);
}

void counts(const json::Object& object, std::string_view least, std::string_view most,
            const std::string& path, json::Object& made, Objections& faults) {
  const std::int64_t low = count(object, least, path, faults);
  const std::int64_t high = count(object, most, path, faults);
  if (low >= 0 && high >= 0 && low > high) {
    faults.refuse(path, fmt::format("has {} {} above {} {}", least, low, most, high));
  }
  if (low > 0) made[json_name(least)] = low;
  if (high >= 0) made[json_name(most)] = high;
}

json::Value string_leaf(const json::Object& object, const std::string& path, Objections& faults) {
  json::Object made{{"type", "string"}};
  const json::Value* pattern = find(object, "pattern");
  const json::Value* format = find(object, "format");
  if (pattern != nullptr) {
    std::string why = "it must be a string";
    const auto held =
        pattern->is_string() ? holdable_pattern(view(pattern->get_string()), why) : std::nullopt;
    if (!held) {
      faults.leave_out(
          path, "pattern",
          fmt::format("is {}, which is not supported: {}", json::shown(*pattern), why));
    } else {
      made["pattern"] = *held;
    }
  }
  if (format != nullptr && made.size() == 1) {
    const std::string_view name =
        format->is_string() ? view(format->get_string()) : std::string_view();
    if (one_of(name, {"date", "time", "date-time", "uuid"})) {
      made["format"] = *format;
    } else if (const std::string_view held = pattern_of_format(name); !held.empty()) {
      made["pattern"] = json_name(held);
    } else {
      faults.leave_out(
          path, "format",
          fmt::format("is {}; date, time, date-time, uuid, email, hostname and ipv4 are "
                      "supported",
                      json::shown(*format)));
    }
  } else if (format != nullptr) {
    faults.leave_out(path, "format", "beside pattern is not supported; leave one out");
  }
  json::Object lengths;
  counts(object, "minLength", "maxLength", path, lengths, faults);
  if (made.size() == 1) {
    made.insert(lengths.begin(), lengths.end());
  } else if (!lengths.empty()) {
    faults.leave_out(path, view(lengths.begin()->key()),
                     "beside pattern or format is not supported; leave one out");
  }
  return made;
}

json::Value integer_leaf(const json::Object& object, const std::string& path, Objections& faults) {
  std::optional<double> low = bound(object, "minimum", path, faults);
  std::optional<double> high = bound(object, "maximum", path, faults);
  if (low) low = std::ceil(*low);
  if (high) high = std::floor(*high);
  if (const auto over = bound(object, "exclusiveMinimum", path, faults)) {
    low = std::max(low.value_or(-INFINITY), std::floor(*over) + 1);
  }
  if (const auto under = bound(object, "exclusiveMaximum", path, faults)) {
    high = std::min(high.value_or(INFINITY), std::ceil(*under) - 1);
  }
  if (low && high && *low > *high) return faults.refuse(path, "allows no number: its bounds cross");
  const json::Value* multiple = find(object, "multipleOf");
  if (multiple != nullptr && *multiple != 1) {
    if (auto all = multiples(*multiple, low, high)) return *all;
    faults.leave_out(path, "multipleOf",
                     fmt::format("is {}, which is supported for whole numbers with a minimum and a "
                                 "maximum that leave 1 to {} of them",
                                 json::shown(*multiple), kMultiplesMax));
  }
  json::Object made{{"type", "integer"}};
  if (!low && !high) return made;
  // llama-common's rules for one bound alone let others pass (10 with minimum 100), and begin
  // numbers with 0.
  if (!low) low = std::min(1 - kBoundMax, *high);
  if (!high) high = std::max(kBoundMax - 1, *low);
  made["minimum"] = static_cast<std::int64_t>(*low);
  made["maximum"] = static_cast<std::int64_t>(*high);
  return made;
}

json::Value number_leaf(const json::Object& object, const std::string& path, Objections& faults) {
  if (const json::Value* multiple = find(object, "multipleOf")) {
    if (*multiple == 1) return integer_leaf(object, path, faults);
    faults.leave_out(path, "multipleOf", "of numbers with fractions is supported for 1 only");
  }
  json::Object any{{"type", "number"}};
  std::optional<Bound> low;
  std::optional<Bound> high;
  for (const bool exclusive : {false, true}) {
    take_bound(object, {exclusive ? "exclusiveMinimum" : "minimum", exclusive, true}, path, low,
               faults);
    take_bound(object, {exclusive ? "exclusiveMaximum" : "maximum", exclusive, false}, path, high,
               faults);
  }
  if (!low && !high) return any;
  if (!faults.strict()) return any;  // the model reads the bounds of its tools itself
  const auto range = range_of(low, high);
  if (!range) {
    faults.refuse(path, "has bounds of more digits than are supported");
    return any;
  }
  if (range->low > range->high) return faults.refuse(path, "allows no number: its bounds cross");
  return json::Object{{"const", json_name(fmt::format("{}{}", kRuleMark, decimal_rules(*range)))}};
}

}  // namespace flotilla::api::schema
