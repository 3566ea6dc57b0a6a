#include "api/stored_items.h"

#include <gtest/gtest.h>

#include "api/responses.h"

namespace flotilla::api {
namespace {

const KeptAnswer kKept{
    .id = "resp_a_b",
    .messages = {},
    .body = R"({"output":[{"id":"rs_a_b_0","type":"reasoning","summary":[],"content":)"
            R"([{"type":"reasoning_text","text":"hm"}]},)"
            R"({"id":"fc_a_b_1","type":"function_call","call_id":"c","name":"w",)"
            R"("arguments":"{}","status":"completed"}]})",
    .input = R"([{"role":"user","content":"Weather?"}])"};

std::string body_with(const std::string& items) {
  return R"({"model":"m","input":[)" + items + "]}";
}

std::string reference(const std::string& id) {
  return R"({"type":"item_reference","id":")" + id + R"("})";
}

TEST(StoredItems, WhichAnswersAreNeededIsToldFirst) {
  const auto asked = parse_responses_request(
      body_with(reference("rs_a_b_0") + "," + reference("fc_a_b_1") + R"(,{"id":"msg_c_0"})"));
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(asked->needs, (std::vector<std::string>{"resp_a_b", "resp_c"}));
  EXPECT_TRUE(parse_responses_request(R"({"model":"m","input":"x"})")->needs.empty());
}

TEST(StoredItems, StandWhereTheyAreNamed) {
  const std::vector<KeptAnswer> stored{kKept};
  const auto request = parse_responses_request(
      body_with(reference("item_a_b_0") + "," + reference("rs_a_b_0") + "," +
                reference("fc_a_b_1") +
                R"(,{"type":"function_call_output","call_id":"c","output":"sun"})"),
      &stored);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->needs.empty());
  EXPECT_EQ(json::to_text(json::parse_object(request->chat)->at("messages")),
            R"([{"role":"user","content":"Weather?"},{"role":"assistant","content":null,)"
            R"("reasoning_content":"hm","tool_calls":[{"id":"c","type":"function","function":)"
            R"({"name":"w","arguments":"{}"}}]},)"
            R"({"role":"tool","content":"sun","tool_call_id":"c"}])");
  // The items themselves are this answer's input, not their names.
  request->answer->answer(
      R"({"id":"chatcmpl-r2","created":5,"model":"m","choices":[{"index":0,"message":{"role":)"
      R"("assistant","content":"Sun."},"finish_reason":"stop"}]})");
  const auto kept = request->answer->take_kept();
  ASSERT_TRUE(kept);
  EXPECT_EQ(input_items(*kept).at(2).at("name"), "w");
}

TEST(StoredItems, ThoseThatAreNotThereAreNamed) {
  const std::vector<KeptAnswer> stored{kKept};
  const auto wrong = [&stored](const std::string& items, bool found) {
    const auto request = parse_responses_request(body_with(items), found ? &stored : nullptr);
    return request ? std::string("none") : request.error().param + " " + request.error().reason;
  };
  EXPECT_EQ(wrong(reference("msg_a_b_7"), true), "input[0].id item_not_found");
  EXPECT_EQ(wrong(reference("msg_c_0"), true), "input[0].id item_not_found");
  EXPECT_EQ(wrong(reference("theirs"), false), "input[0].id item_not_found");
  EXPECT_EQ(wrong(R"({"type":"item_reference"})", false), "input[0].id ");
  EXPECT_EQ(wrong(reference("rs_a_b_0") + "," + reference("rs_a_b_0"), true), "input[1].id ");
}

TEST(StoredItems, AnItemWithoutATypeIsAMessageIfSomebodySaysIt) {
  const auto is = [](const char* item) { return is_item_reference(*json::parse_object(item)); };
  EXPECT_TRUE(is(R"({"id":"a"})"));
  EXPECT_TRUE(is(R"({"id":"a","type":null})"));
  EXPECT_TRUE(is(R"({"id":"a","type":"item_reference"})"));
  EXPECT_FALSE(is(R"({"id":"a","role":"user","content":"x"})"));
  EXPECT_FALSE(is(R"({"role":"user"})"));
  EXPECT_FALSE(is(R"({"id":"a","type":"message"})"));
}

}  // namespace
}  // namespace flotilla::api
