#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What our commands use of CLI11, under its own words. Its header is code that takes the compiler
// many seconds a file, so flags.cpp alone includes it. App and Option are handles: copies name the
// same one, and all end with the Program.
namespace flotilla::cli {

// A flag, an option with values, or an argument by its place. Each call returns the same option.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option required() const;
  Option excludes(Option other) const;
  Option hidden() const;  // from --help, man pages and completions
  Option environment(const std::string& variable) const;
  Option describe(const std::string& about) const;

  Option show_default() const;                         // what the variable has now
  Option show_default(const std::string& text) const;  // without setting it
  Option type_name(const std::string& name) const;

  Option between(int low, int high) const;
  Option between(double low, double high) const;
  Option not_negative() const;
  Option one_of(const std::vector<std::string>& values) const;
  Option bytes() const;  // "4GiB" is understood
  // Says what is wrong with a value; empty = nothing.
  Option check(std::function<std::string(const std::string&)> complaint) const;

  Option values(int least, int most) const;
  Option one_value_each() const;  // repeated for another one
  Option separated_by(char mark) const;

  // After the words were read.
  bool given() const;
  std::vector<std::string> texts() const;

 private:
  CLI::Option* option_;
};

// The program or one of its commands.
class App {
 public:
  explicit App(CLI::App& app) : app_(&app) {}

  App add_subcommand(const std::string& name, const std::string& about) const;
  void require_subcommand() const;
  void footer(const std::string& text) const;
  void callback(std::function<void()> run) const;  // of the command that was chosen

  // `names`: "--port", "-f,--file", or "url" for an argument by its place. T: text, a number, a
  // vector of these, or an optional number (flags.cpp lists them).
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& about = "") const;
  Option add_flag(const std::string& name, bool& value, const std::string& about) const;
  // An option that only the environment sets, so that its value is checked and named in errors.
  template <class T, class Bound>
  void add_knob(const std::string& variable, T& value, Bound low, Bound high) const;

  const CLI::App& tree() const { return *app_; }

 protected:
  CLI::App* app_;
};

class Program : public App {
 public:
  // `version`: what --version prints.
  Program(const std::string& about, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Runs the chosen command's callback. The exit code if it did not come to that: 0, --help has
  // been printed; 2, the words are wrong, which has been said.
  std::optional<int> parse(int argc, char** argv);

 private:
  explicit Program(std::unique_ptr<CLI::App> root);
  std::unique_ptr<CLI::App> root_;
};

// Ends a callback with the usage error of a required option that is missing.
[[noreturn]] void throw_missing(const std::string& what);

}  // namespace flotilla::cli
