#include "api/schema_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace flotilla::api::schema {
namespace {

constexpr int kDigitsMax = 18;  // of an int64, whatever they are

std::int64_t power_of_ten(int exponent) {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

std::string one_of(char from, char to) {
  return from == to ? fmt::format("[{}]", from) : fmt::format("[{}-{}]", from, to);
}
std::string digits(std::size_t least, std::size_t most) {
  if (most == 0) return {};
  return least == most ? fmt::format("[0-9]{{{}}}", most)
                       : fmt::format("[0-9]{{{},{}}}", least, most);
}
bool all_are(std::string_view text, char digit) {
  return text.find_first_not_of(digit) == text.npos;
}
std::string any_of(const std::vector<std::string>& ways) {
  return fmt::format("({})", fmt::join(ways, " | "));
}

// Whole numbers of as many digits as `low` and `high` have.
std::string between(std::string_view low, std::string_view high) {
  if (low.empty()) return {};
  if (all_are(low, '0') && all_are(high, '9')) return digits(low.size(), low.size());
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  if (low[0] == high[0]) return one_of(low[0], low[0]) + ' ' + between(low_rest, high_rest);
  const std::string nines(low_rest.size(), '9');
  const std::string zeros(low_rest.size(), '0');
  std::vector<std::string> ways = {one_of(low[0], low[0]) + ' ' + between(low_rest, nines)};
  if (high[0] - low[0] > 1) {
    ways.push_back(one_of(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)) + ' ' +
                   digits(low_rest.size(), low_rest.size()));
  }
  ways.push_back(one_of(high[0], high[0]) + ' ' + between(zeros, high_rest));
  return any_of(ways);
}

// Whole numbers from 0 on.
std::string whole(std::int64_t low, std::int64_t high) {
  std::vector<std::string> ways;
  const std::string last = std::to_string(high);
  for (std::string from = std::to_string(low); from.size() <= last.size();
       from = '1' + std::string(from.size(), '0')) {
    ways.push_back(between(from, from.size() < last.size() ? std::string(from.size(), '9') : last));
  }
  return any_of(ways);
}

// Digits behind the point, which may end early: what is missing is zeros. Each has one at least.
std::string behind_from(std::string_view low) {
  const std::string_view rest = low.substr(1);
  std::vector<std::string> ways = {
      one_of(low[0], low[0]) + ' ' +
      (all_are(rest, '0') ? digits(0, rest.size()) : behind_from(rest))};
  if (low[0] < '9')
    ways.push_back(one_of(static_cast<char>(low[0] + 1), '9') + ' ' + digits(0, rest.size()));
  return any_of(ways);
}
std::string behind_to(std::string_view high) {
  const std::string_view rest = high.substr(1);
  std::vector<std::string> ways = {one_of(high[0], high[0]) +
                                   (rest.empty() ? "" : ' ' + behind_to(rest) + '?')};
  if (high[0] > '0')
    ways.push_back(one_of('0', static_cast<char>(high[0] - 1)) + ' ' + digits(0, rest.size()));
  return any_of(ways);
}
std::string behind_between(std::string_view low, std::string_view high) {
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  if (low[0] == high[0]) {
    const std::string first = one_of(low[0], low[0]);
    if (low_rest.empty()) return first;
    return all_are(low_rest, '0') ? first + ' ' + behind_to(high_rest) + '?'
                                  : first + ' ' + behind_between(low_rest, high_rest);
  }
  std::vector<std::string> ways = {
      one_of(low[0], low[0]) + ' ' +
          (all_are(low_rest, '0') ? digits(0, low_rest.size()) : behind_from(low_rest)),
      one_of(high[0], high[0]) + (high_rest.empty() ? "" : ' ' + behind_to(high_rest) + '?')};
  if (high[0] - low[0] > 1) {
    ways.push_back(one_of(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)) + ' ' +
                   digits(0, low_rest.size()));
  }
  return any_of(ways);
}

// From 0 on.
std::string positive(const DecimalRange& range) {
  if (range.decimals == 0) return whole(range.low, range.high);
  const std::int64_t unit = power_of_ten(range.decimals);
  const std::int64_t first = range.low / unit;
  const std::int64_t last = range.high / unit;
  const auto behind = [&](std::int64_t value) {
    return fmt::format("{:0{}}", value % unit, range.decimals);
  };
  const std::string low = behind(range.low);
  const std::string high = behind(range.high);
  const std::string any = fmt::format("([.] {})?", digits(1, low.size()));
  const bool from_zero = all_are(low, '0');
  if (first == last) {
    const std::string rest = "([.] " + behind_between(low, high) + ')';
    return whole(first, first) + ' ' + rest + (from_zero ? "?" : "");
  }
  std::vector<std::string> ways;
  if (last - first > 1) ways.push_back(whole(first + 1, last - 1) + ' ' + any);
  ways.push_back(whole(first, first) + ' ' + (from_zero ? any : "[.] " + behind_from(low)));
  ways.push_back(whole(last, last) + " ([.] " + behind_to(high) + ")?");
  return any_of(ways);
}

}  // namespace

std::string decimal_rules(const DecimalRange& range) {
  if (range.low >= 0) return positive(range);
  const auto negative = [&](std::int64_t low, std::int64_t high) {
    return "[-] " + positive({.low = low, .high = high, .decimals = range.decimals});
  };
  if (range.high < 0) return negative(-range.high, -range.low);
  return any_of({negative(0, -range.low),
                 positive({.low = 0, .high = range.high, .decimals = range.decimals})});
}

std::optional<Decimal> decimal_of(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  const std::string text = fmt::format("{}", number);
  const std::size_t mark = text.find('e');
  int exponent = 0;
  if (mark != text.npos) {
    const char* begin = text.data() + mark + 1 + (text[mark + 1] == '+' ? 1 : 0);
    std::from_chars(begin, text.data() + text.size(), exponent);
  }
  std::string all = text.substr(0, mark);
  if (const std::size_t point = all.find('.'); point != all.npos) {
    exponent -= static_cast<int>(all.size() - point - 1);
    all.erase(point, 1);
  }
  if (exponent > 0) all.append(static_cast<std::size_t>(exponent), '0');
  Decimal out{.digits = 0, .decimals = std::max(0, -exponent)};
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), out.digits);
  if (error != std::errc{} || end != all.data() + all.size()) return std::nullopt;
  while (out.decimals > 0 && out.digits % 10 == 0) {
    out.digits /= 10;
    --out.decimals;
  }
  const bool fits = out.decimals <= kDigitsMax && scaled(out, out.decimals);
  return fits ? std::optional(out) : std::nullopt;
}

std::optional<std::int64_t> scaled(const Decimal& decimal, int decimals) {
  const int more = decimals - decimal.decimals;
  if (more < 0 || more > kDigitsMax) return std::nullopt;
  const std::int64_t most = power_of_ten(kDigitsMax) / power_of_ten(more);
  if (decimal.digits >= most || decimal.digits <= -most) return std::nullopt;
  return decimal.digits * power_of_ten(more);
}

}  // namespace flotilla::api::schema
