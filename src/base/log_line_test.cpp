#include "base/log_line.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace flotilla::log {
namespace {

Fields some_fields() {
  Fields fields = of_request("req-1");
  fields.add("model", "a \"b\"").add("status", 200).add("took_ms", 1.5);
  return fields;
}

TEST(Log, TextHasFieldsAfterTheWordsAndOneLineOnly) {
  EXPECT_EQ(line_of(Form::Text, "ended\nwell", some_fields()),
            "ended well request_id=req-1 model=\"a \\\"b\\\"\" status=200 took_ms=1.5");
}

TEST(Log, JsonHasThemAsMembersWithTheirTypes) {
  EXPECT_EQ(line_of(Form::Json, "ended\n\"well\"\xFF", some_fields()),
            "\"message\":\"ended\\n\\\"well\\\"\xEF\xBF\xBD\",\"request_id\":\"req-1\","
            "\"model\":\"a \\\"b\\\"\",\"status\":200,\"took_ms\":1.5");
}

TEST(Log, WordsOfSettingsAreRead) {
  EXPECT_EQ(parse_form("json"), Form::Json);
  EXPECT_EQ(parse_form("text"), Form::Text);
  EXPECT_EQ(parse_level("debug"), Level::Debug);
  EXPECT_EQ(parse_level("error"), Level::Error);
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// In a process of its own: the logger is the process's.
void write_much(const std::filesystem::path& file) {
  start("test", Level::Info);
  set_form(Form::Json);
  if (!write_to(file, 1000, 2)) std::_Exit(1);
  for (int i = 0; i < 100; ++i) {
    Fields fields = of_request("req-x");
    info(fields.add("number", i), "line");
  }
  debug("not told");
  std::_Exit(0);
}

TEST(LogDeathTest, AFileIsMovedAwayAtItsSizeAndOldOnesGo) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "flotilla_log_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_EXIT(write_much(folder / "a.log"), testing::ExitedWithCode(0), "^$");
  EXPECT_TRUE(std::filesystem::exists(folder / "a.1.log"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a.2.log"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.3.log"));
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_LE(entry.file_size(), 1000U) << entry.path();
  const std::string all = text_of(folder / "a.1.log") + text_of(folder / "a.log");
  EXPECT_TRUE(
      all.ends_with("\"component\":\"test\",\"message\":\"line\",\"request_id\":\"req-x\","
                    "\"number\":99}\n"))
      << all;
  std::filesystem::remove_all(folder);
}

TEST(LogDeathTest, AFileThatCannotBeIsNamed) {
  const auto written = write_to("/proc/nothing/here.log", 1000, 2);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/proc/nothing/here.log"), std::string::npos)
      << written.error().message;
}

}  // namespace
}  // namespace flotilla::log
