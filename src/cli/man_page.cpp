#include "cli/man_page.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace flotilla::cli {
namespace {

// Nothing of a text is taken for roff's own.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

// A text's lines: paragraphs are filled, indented lines (examples) stay as they are.
void add_text(std::string& out, std::string_view text) {
  bool exact = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool indented = line.starts_with(' ');
    if (indented != exact && !line.empty()) {
      out += indented ? ".RS\n.nf\n" : ".fi\n.RE\n";
      exact = indented;
    }
    if (line.empty()) {
      out += exact ? "" : ".PP\n";
    } else {
      const std::string_view words = line.substr(line.find_first_not_of(' '));
      if (words.starts_with('.') || words.starts_with('\'')) out += "\\&";
      out += escaped(words) + "\n";
    }
  }
  if (exact) out += ".fi\n.RE\n";
}

std::string shown_value(const CommandOption& option) {
  std::string out;
  for (const std::string& choice : option.choices) out += (out.empty() ? "" : "|") + choice;
  return out.empty() ? option.value : out;
}

void add_option(std::string& out, const CommandOption& option) {
  out += ".TP\n";
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "\\fB" : ", \\fB") + escaped(name) + "\\fR";
  if (option.names.empty()) names = "\\fI" + escaped(option.place) + "\\fR";
  if (!option.value.empty() && !option.names.empty())
    names += " \\fI" + escaped(shown_value(option)) + "\\fR";
  out += names + "\n";
  add_text(out, option.about.empty() ? "See the text above." : option.about);
  std::string more;
  if (option.required) more += "Required. ";
  if (!option.standard.empty()) more += fmt::format("Default: {}. ", option.standard);
  if (!option.environment.empty() && option.about.find(option.environment) == std::string::npos)
    more += fmt::format("Environment: {}. ", option.environment);
  if (!more.empty()) {
    more.pop_back();
    out += ".br\n";
    add_text(out, more);
  }
}

void add_synopsis(std::string& out, const Command& command) {
  out += "\\fB" + escaped(command.name()) + "\\fR";
  bool any = false;
  for (const CommandOption& option : command.options) {
    any = any || !option.names.empty();
    if (!option.names.empty() && option.required)
      out += " \\fB" + escaped(option.names.front()) + "\\fR \\fI" + escaped(shown_value(option)) +
             "\\fR";
  }
  if (any) out += " [\\fIOPTIONS\\fR]";
  for (const CommandOption& option : command.options) {
    if (option.names.empty())
      out += option.required ? " \\fI" + escaped(option.place) + "\\fR"
                             : " [\\fI" + escaped(option.place) + "\\fR]";
  }
  if (!command.commands.empty()) out += " \\fICOMMAND\\fR";
  out += "\n";
}

void add_options(std::string& out, const Command& command) {
  for (const CommandOption& option : command.options) add_option(out, option);
}

// Commands below, each as a section of its own.
void add_commands(std::string& out, const Command& command) {
  for (const Command& below : command.commands) {
    std::string heading = below.name();
    std::ranges::transform(heading, heading.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    out += ".SH " + escaped(heading) + "\n";
    add_synopsis(out, below);
    out += ".PP\n";
    add_text(out, below.about);
    if (!below.footer.empty()) add_text(out, "\n" + below.footer);
    add_options(out, below);
    add_commands(out, below);
  }
}

}  // namespace

std::string man_page_name(const Command& command) {
  std::string name = command.name();
  std::ranges::replace(name, ' ', '-');
  return name + ".1";
}

std::string man_page(const Command& command, std::string_view version) {
  std::string title = man_page_name(command);
  title.resize(title.size() - 2);
  std::string out =
      fmt::format(".TH \"{}\" 1 \"\" \"flotilla {}\" \"Flotilla\"\n.SH NAME\n{} \\- {}\n",
                  escaped(title), version, escaped(title), escaped(command.summary()));
  out += ".SH SYNOPSIS\n";
  add_synopsis(out, command);
  out += ".SH DESCRIPTION\n";
  add_text(out, command.about);
  if (!command.footer.empty()) add_text(out, "\n" + command.footer);
  if (!command.options.empty()) {
    out += ".SH OPTIONS\n";
    add_options(out, command);
  }
  if (command.path.empty()) {
    out += ".SH COMMANDS\n";
    for (const Command& below : command.commands)
      out += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n",
                         escaped(man_page_name(below).substr(0, man_page_name(below).size() - 2)),
                         escaped(below.summary()));
    out += ".SH EXIT STATUS\n0: done; 1: failed, said on stderr; 2: wrong usage.\n";
  } else {
    add_commands(out, command);
    out += ".SH SEE ALSO\n\\fBflotilla\\fR(1)\n";
  }
  return out;
}

}  // namespace flotilla::cli
