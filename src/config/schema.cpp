#include <map>

#include <fmt/format.h>

#include "api/json_text.h"
#include "config/layers.h"

namespace flotilla::config {
namespace {

std::string type_of(const Setting& setting) {
  struct Words {
    const Setting& setting;
    std::string operator()(bool) const { return R"("type": "boolean")"; }
    std::string operator()(double) const {
      return fmt::format(R"("type": "{}", "minimum": {}, "maximum": {})",
                         setting.whole ? "integer" : "number", to_json(Value(setting.min)),
                         to_json(Value(setting.max)));
    }
    std::string operator()(const std::string&) const {
      if (setting.choices.empty()) return R"("type": "string")";
      return fmt::format(R"("type": "string", "enum": {})", to_json(Value(setting.choices)));
    }
    std::string operator()(const std::filesystem::path&) const {
      return R"x("type": "string", "pattern": "^(?!~)")x";
    }
    std::string operator()(const std::vector<std::string>&) const {
      return R"("type": "array", "items": {"type": "string"})";
    }
    std::string operator()(const Node&) const { return setting.schema; }
  };
  return std::visit(Words{setting}, setting.target.standard);
}

std::string property(const Setting& setting) {
  std::string out = fmt::format(R"({}: {{{}, "description": {})", api::json_string(setting.key),
                                type_of(setting), api::json_string(setting.about));
  if (!setting.varies && setting.schema.empty())
    out += R"(, "default": )" + to_json(setting.target.standard);
  return out + "}";
}

std::string object(const std::string& properties, std::string_view indent) {
  return fmt::format(
      "\"type\": \"object\",\n{0}\"additionalProperties\": false,\n"
      "{0}\"properties\": {{\n{1}\n{0}}}",
      indent, properties);
}

void add_line(std::string& lines, std::string_view indent, const std::string& line) {
  lines += fmt::format("{}{}{}", lines.empty() ? "" : ",\n", indent, line);
}

}  // namespace

std::string json_schema(std::span<const Setting> settings) {
  std::string top;
  std::map<std::string, std::string> sections;
  for (const Setting& setting : settings) {
    if (setting.section.empty()) {
      add_line(top, "    ", property(setting));
    } else {
      add_line(sections[setting.section], "        ", property(setting));
    }
  }
  // A section without a line in it is null.
  for (const auto& [name, properties] : sections) {
    std::string section = object(properties, "      ");
    section.replace(0, section.find(','), R"("type": ["object", "null"])");
    add_line(top, "    ", fmt::format("{}: {{\n      {}\n    }}", api::json_string(name), section));
  }
  return fmt::format(
      "{{\n"
      "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
      "  \"title\": \"flotilla.yaml\",\n"
      "  \"description\": \"What `flotilla serve` needs to start.\",\n"
      "  {}\n}}\n",
      object(top, "  "));
}

}  // namespace flotilla::config
