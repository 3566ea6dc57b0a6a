#pragma once

#include <cstdint>
#include <optional>
#include <string>

// Numbers between bounds as GBNF, digit by digit: character classes, groups and counts alone.
namespace flotilla::api::schema {

// Of at most `decimals` digits behind the point; bounds in units of the last of them, inclusive.
struct DecimalRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  int decimals = 0;
};
std::string decimal_rules(const DecimalRange& range);

// A double as the shortest decimal that is it, "0.30" = 3 tenths. None: more than 18 digits.
struct Decimal {
  std::int64_t digits = 0;
  int decimals = 0;  // behind the point, >= 0
};
std::optional<Decimal> decimal_of(double number);
// In units of the `decimals`-th digit behind the point; none: it does not fit, or has more digits.
std::optional<std::int64_t> scaled(const Decimal& decimal, int decimals);

}  // namespace flotilla::api::schema
