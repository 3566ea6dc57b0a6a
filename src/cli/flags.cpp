#include "cli/flags.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/numbers.h"

namespace flotilla::cli {
namespace {

struct Range {
  double low;
  double high;
  bool whole;

  // Of what is not in it; empty: nothing is wrong.
  std::string complaint(const std::string& text) const {
    const auto value = parse_double(text);
    if (value && *value >= low && *value <= high && (!whole || *value == std::floor(*value)))
      return {};
    const char* what = whole ? "a whole number" : "a number";
    if (std::isinf(high)) return fmt::format("\"{}\" is not {} of {} or more", text, what, low);
    return fmt::format("\"{}\" is not {} from {} to {}", text, what, low, high);
  }
};

void check_range(CLI::Option& option, const Range& range, const std::string& about) {
  option.check([range](const std::string& text) { return range.complaint(text); }, about);
}

}  // namespace

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::hidden() const {
  option_->group("");
  return *this;
}

Option Option::environment(const std::string& variable) const {
  option_->envname(variable);
  return *this;
}

Option Option::describe(const std::string& about) const {
  option_->description(about);
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::show_default(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::between(int low, int high) const {
  check_range(*option_, {.low = 1.0 * low, .high = 1.0 * high, .whole = true},
              fmt::format("INT in [{} - {}]", low, high));
  return *this;
}

Option Option::between(double low, double high) const {
  check_range(*option_, {.low = low, .high = high, .whole = false},
              fmt::format("FLOAT in [{} - {}]", low, high));
  return *this;
}

Option Option::not_negative() const {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  check_range(*option_, {.low = 0, .high = kEndless, .whole = false}, "NONNEGATIVE");
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option Option::bytes() const {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> complaint) const {
  option_->check(std::move(complaint), "");
  return *this;
}

Option Option::values(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

Option Option::one_value_each() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::separated_by(char mark) const {
  option_->delimiter(mark);
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

std::vector<std::string> Option::texts() const { return option_->results(); }

App App::add_subcommand(const std::string& name, const std::string& about) const {
  return App(*app_->add_subcommand(name, about));
}

void App::require_subcommand() const { app_->require_subcommand(1); }

void App::footer(const std::string& text) const { app_->footer(text); }

void App::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

template <class T>
Option App::add_option(const std::string& names, T& value, const std::string& about) const {
  return Option(*app_->add_option(names, value, about));
}

template Option App::add_option(const std::string&, std::string&, const std::string&) const;
template Option App::add_option(const std::string&, int&, const std::string&) const;
template Option App::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option App::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option App::add_option(const std::string&, double&, const std::string&) const;
template Option App::add_option(const std::string&, std::optional<std::int64_t>&,
                                const std::string&) const;
template Option App::add_option(const std::string&, std::vector<std::string>&,
                                const std::string&) const;
template Option App::add_option(const std::string&, std::vector<int>&, const std::string&) const;

Option App::add_flag(const std::string& name, bool& value, const std::string& about) const {
  return Option(*app_->add_flag(name, value, about));
}

template <class T, class Bound>
void App::add_knob(const std::string& variable, T& value, Bound low, Bound high) const {
  const Range range{.low = 1.0 * low, .high = 1.0 * high, .whole = std::is_integral_v<T>};
  app_->add_option("--" + variable, value)
      ->envname(variable)
      ->check([variable, range](const std::string& text) {
        const std::string wrong = range.complaint(text);
        return wrong.empty() ? wrong : fmt::format("environment variable {}: {}", variable, wrong);
      })
      ->group("");
}

template void App::add_knob(const std::string&, int&, int, int) const;
template void App::add_knob(const std::string&, double&, double, double) const;
template void App::add_knob(const std::string&, std::int64_t&, double, double) const;

Program::Program(const std::string& about, const std::string& version)
    : Program(std::make_unique<CLI::App>(about)) {
  root_->set_version_flag("--version", version, "Print the version and exit");
}

Program::Program(std::unique_ptr<CLI::App> root) : App(*root), root_(std::move(root)) {}

Program::~Program() = default;

std::optional<int> Program::parse(int argc, char** argv) {
  try {
    root_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return root_->exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

void throw_missing(const std::string& what) { throw CLI::RequiredError(what); }

}  // namespace flotilla::cli
