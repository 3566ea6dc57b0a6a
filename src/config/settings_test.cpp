#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/layers.h"

namespace flotilla::config {
namespace {

struct Options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  bool open = false;
  std::filesystem::path token;
  std::vector<std::string> proxies;
  std::string level = "info";
  double queue = 5;
};

class SettingsFileTest : public testing::Test {
 protected:
  FileValues good(std::string_view text) {
    auto read = read_settings(table, text, "/etc/x/f.yaml");
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : FileValues{};
  }
  std::string error_of(std::string_view text) {
    const auto read = read_settings(table, text, "f.yaml");
    EXPECT_FALSE(read);
    return read ? std::string() : read.error().message;
  }
  Result<std::vector<Resolved>> resolved(std::string_view file,
                                         std::map<std::string, std::string> flags,
                                         std::map<std::string, std::string> variables) {
    return resolve(table, {.flags = std::move(flags),
                           .environment = [variables](const char* name) -> const char* {
                             const auto found = variables.find(name);
                             return found == variables.end() ? nullptr : found->second.c_str();
                           },
                           .file = good(file)});
  }

  Options options;
  std::vector<Setting> table = {
      {.key = "host",
       .flag = "--host",
       .about = "Where \"it\" listens",
       .target = into(options.host)},
      {.key = "port",
       .flag = "--port",
       .environment = "PORT",
       .target = into(options.port),
       .max = 65535},
      {.key = "open", .flag = "--open", .target = into(options.open)},
      {.key = "token", .target = into(options.token), .varies = true},
      {.key = "proxies", .target = into(options.proxies)},
      {.key = "level", .target = into(options.level), .choices = {"info", "error"}},
      {.key = "QUEUE",
       .environment = "QUEUE",
       .target = {.standard = 5.0,
                  .assign =
                      [this](const Value& value) { options.queue = std::get<double>(value); }},
       .min = 0.5,
       .max = 9,
       .whole = false,
       .section = "knobs"},
  };
};

TEST_F(SettingsFileTest, reads_each_kind_of_value) {
  const FileValues values = good(
      "host: example.org\nport: 0\nopen: true\ntoken: t/../token\nproxies: [a, b]\nlevel: error\n"
      "knobs:\n  QUEUE: 1.5\n");
  for (const Setting& setting : table) setting.target.assign(values.at(setting.name()).value);
  EXPECT_EQ(options.host, "example.org");
  EXPECT_EQ(options.port, 0);
  EXPECT_TRUE(options.open);
  EXPECT_EQ(options.token, "/etc/x/token") << "relative to the file";
  EXPECT_EQ(options.proxies, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.level, "error");
  EXPECT_EQ(options.queue, 1.5);
  EXPECT_EQ(values.at("knobs.QUEUE").line, 8);
  EXPECT_TRUE(good("").empty());
  EXPECT_TRUE(good("knobs:\n").empty());
}

TEST_F(SettingsFileTest, all_that_is_wrong_is_told_with_its_place) {
  EXPECT_EQ(error_of("prot: 1\nport: eighty\nopen: yes\nhost: 8\nknobs:\n  QUEUE: 10\n"),
            "f.yaml:1:1: there is no setting \"prot\"; did you mean \"port\"? `flotilla config "
            "schema` has them all\n"
            "f.yaml:2:7: port is \"eighty\"; it takes a whole number from 0 to 65535\n"
            "f.yaml:3:7: open is \"yes\"; it takes true or false\n"
            "f.yaml:4:7: host is 8; it takes a text (in quotes, if it looks like a number)\n"
            "f.yaml:6:10: knobs.QUEUE is 10; it takes a number from 0.5 to 9");
  for (const char* wrong :
       {"port: 65536", "port: 1.5", "port: -1", "port: \"80\"", "port: [1]", "port:", "level: all",
        "token: ~/x", "proxies: a", "proxies: [1]", "knobs: [a]", "- port", "just words"})
    EXPECT_TRUE(error_of(wrong).starts_with("f.yaml:1:")) << wrong;
}

TEST_F(SettingsFileTest, a_key_at_the_wrong_place_is_sent_to_its_own) {
  EXPECT_NE(error_of("QUEUE: 3\n").find("belongs under knobs"), std::string::npos);
  EXPECT_NE(error_of("knobs:\n  port: 3\n").find("belongs at the top"), std::string::npos);
  EXPECT_NE(error_of("knob:\n  QUEUE: 3\n").find("did you mean \"knobs\"?"), std::string::npos);
  EXPECT_NE(
      error_of("knobs:\n  QUEUES: 3\n").find("no knobs entry \"QUEUES\"; did you mean \"QUEUE\"?"),
      std::string::npos);
}

TEST_F(SettingsFileTest, flag_goes_before_environment_before_file_before_default) {
  const auto all = resolved("host: h\nport: 1\nopen: true\n", {{"port", "3"}, {"host", "f"}},
                            {{"PORT", "2"}, {"QUEUE", "7"}});
  ASSERT_TRUE(all) << all.error().message;
  const auto line = [&](std::size_t i) {
    return fmt::format("{} {} {} {}", all->at(i).setting->name(), shown(all->at(i).value),
                       all->at(i).source, all->at(i).where);
  };
  EXPECT_EQ(line(0), "host f flag --host");
  EXPECT_EQ(line(1), "port 3 flag --port");
  EXPECT_EQ(line(2), "open true file line 3");
  EXPECT_EQ(line(5), "level info default ");
  EXPECT_EQ(line(6), "knobs.QUEUE 7 environment QUEUE");
}

TEST_F(SettingsFileTest, a_wrong_flag_or_variable_is_named) {
  EXPECT_EQ(resolved("", {{"port", "x"}}, {}).error().message,
            "--port is \"x\"; it takes a whole number from 0 to 65535");
  EXPECT_EQ(resolved("", {}, {{"QUEUE", "0.1"}}).error().message,
            "QUEUE is \"0.1\"; it takes a number from 0.5 to 9");
}

TEST_F(SettingsFileTest, the_schema_is_of_the_same_table) {
  const std::string text = json_schema(table);
  const auto tree = parse_yaml(text, "schema");  // JSON is YAML
  ASSERT_TRUE(tree) << tree.error().message;
  const Node& properties = *tree->find("properties");
  EXPECT_EQ(properties.items.size(), 7U);
  EXPECT_EQ(properties.find("port")->find("maximum")->text, "65535");
  EXPECT_EQ(properties.find("port")->find("default")->text, "8000");
  EXPECT_EQ(properties.find("port")->find("type")->text, "integer");
  EXPECT_EQ(properties.find("token")->find("default"), nullptr);
  EXPECT_EQ(properties.find("knobs")->find("properties")->find("QUEUE")->find("minimum")->text,
            "0.5");
  EXPECT_EQ(properties.find("level")->find("enum")->items.size(), 2U);
  EXPECT_EQ(tree->find("additionalProperties")->text, "false");
}

}  // namespace
}  // namespace flotilla::config
