#include "api/renamed_fields.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

constexpr RenamedField kNames[] = {
    {"form.schema.", "text."}, {".function.", "."}, {"messages", "input"}};

Error renamed(const std::string& param, const std::string& message) {
  return with_names({.code = Code::InvalidArgument, .message = message, .param = param}, kNames);
}

TEST(RenamedFields, AreNamedAsTheyWereSent) {
  const Error tool = renamed("tools[0].function.name", "tools[0].function.name is 5; it must be …");
  EXPECT_EQ(tool.param, "tools[0].name");
  EXPECT_EQ(tool.message, "tools[0].name is 5; it must be …");
  const Error schema = renamed("form.schema.a", "form.schema.a is form.schema.a");
  EXPECT_EQ(schema.param, "text.a");
  EXPECT_EQ(schema.message, "text.a is text.a");
  EXPECT_EQ(renamed("messages", "shorten the messages").message, "shorten the input");
}

TEST(RenamedFields, OthersStayAsTheyAre) {
  EXPECT_EQ(renamed("messages_of", "messages_of").param, "messages_of");
  EXPECT_EQ(renamed("a.function.b", "x").param, "a.function.b");
  // Only the first is a level of the form; behind it stand a schema's own names.
  EXPECT_EQ(renamed("tools[0].function.parameters.function.x", "").param,
            "tools[0].parameters.function.x");
  EXPECT_EQ(renamed("", "messages").message, "messages");
}

}  // namespace
}  // namespace flotilla::api
