#include "api/request_case.h"

#include <set>

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

RequestCase expecting(std::string expect, bool stream = false) {
  RequestCase one;
  one.expect = std::move(expect);
  one.stream = stream;
  return one;
}
std::string unmet(std::string expect, std::string body, int status = 200) {
  return find_unmet(expecting(std::move(expect)), {.status = status, .body = std::move(body)});
}

TEST(RequestCase, all_that_are_built_in_can_be_read) {
  const auto cases = read_request_cases(request_cases_json(), "my-model");
  ASSERT_TRUE(cases) << cases.error().message;
  EXPECT_GT(cases->size(), 100U);
  std::set<std::string> ids;
  for (const RequestCase& one : *cases) {
    EXPECT_TRUE(ids.insert(one.id).second) << one.id;
    EXPECT_TRUE(one.target.starts_with("/")) << one.id;
    EXPECT_EQ(one.body.find("$MODEL"), std::string::npos) << one.id;
    EXPECT_EQ(one.body.find("$repeat"), std::string::npos) << one.id;
    EXPECT_EQ(one.expect.find("$MODEL"), std::string::npos) << one.id;
  }
}

TEST(RequestCase, a_case_is_a_request_to_the_model) {
  const auto cases = read_request_cases(
      R"([{"id":"a","body":{"model":"$MODEL","input":{"$repeat":["ab",3]}},"stream":true,
           "headers":{"x-api-key":"k"},"expect":{"status":[200]}},
          {"id":"b","raw_hex":"7bfF","expect":{"status":[400]}},
          {"id":"c","path":"/v1/models/$MODEL","expect":{"status":[200]},"ours":true}])",
      "my-model");
  ASSERT_TRUE(cases) << cases.error().message;
  ASSERT_EQ(cases->size(), 3U);
  EXPECT_EQ((*cases)[0].method, "POST");
  EXPECT_EQ((*cases)[0].target, "/v1/chat/completions");
  EXPECT_EQ((*cases)[0].body, R"({"model":"my-model","input":"ababab"})");
  EXPECT_TRUE((*cases)[0].stream);
  ASSERT_EQ((*cases)[0].headers.size(), 1U);
  EXPECT_EQ((*cases)[0].headers[0].second, "k");
  EXPECT_EQ((*cases)[1].body, "{\xff");
  EXPECT_EQ((*cases)[2].method, "GET");
  EXPECT_EQ((*cases)[2].target, "/v1/models/my-model");
  EXPECT_TRUE((*cases)[2].ours);
}

TEST(RequestCase, a_case_without_id_or_expectation_is_refused) {
  EXPECT_FALSE(read_request_cases("{}", "m"));
  EXPECT_FALSE(read_request_cases(R"([{"expect":{}}])", "m"));
  EXPECT_FALSE(read_request_cases(R"([{"id":"a"}])", "m"));
}

TEST(RequestCase, status_and_time_are_held) {
  EXPECT_EQ(unmet(R"({"status":[200,400]})", "", 400), "");
  EXPECT_EQ(unmet(R"({"status":[200,400]})", "full", 503), "status 503, wanted 200 or 400: full");
  const CaseAnswer late{.status = 200, .body = "", .seconds = 7};
  EXPECT_NE(find_unmet(expecting(R"({"status":[200],"max_s":5})"), late).find("7.0 s"),
            std::string::npos);
  EXPECT_EQ(find_unmet(expecting(R"({"status":[200]})"), late), "");
}

TEST(RequestCase, values_are_found_by_their_paths) {
  const std::string body =
      R"({"error":{"message":"No such MODEL","code":null},"list":[{"n":1},{"n":2.0}],"none":[]})";
  const auto with = [&](const std::string& condition) {
    return unmet(R"({"status":[200],"json":{)" + condition + "}}", body);
  };
  EXPECT_EQ(with(R"("list.1.n":2)"), "");
  EXPECT_EQ(with(R"("list.0.n":{"min":1,"max":1})"), "");
  EXPECT_EQ(with(R"("error.message":{"contains":"model"})"), "");
  EXPECT_EQ(with(R"("error.message":{"not_contains":"model"})"), "");
  EXPECT_EQ(with(R"("list":{"type":"list"})"), "");
  EXPECT_EQ(with(R"("list.0.n":{"type":"int"})"), "");
  EXPECT_EQ(with(R"("list.0.n":{"in":[3,1]})"), "");
  EXPECT_EQ(with(R"("error.code":{"absent":true},"none":{"absent":true},"x.y":{"absent":true})"),
            "");
  EXPECT_EQ(with(R"("list.2.n":2)"), "list.2.n is missing, wanted 2");
  EXPECT_EQ(with(R"("list.0.n":{"min":2})"), R"(list.0.n is 1, wanted {"min":2})");
  EXPECT_NE(with(R"("list.0.n":{"max":0})"), "");
  EXPECT_NE(with(R"("list.0.n":{"type":"str"})"), "");
  EXPECT_NE(with(R"("list.0.n":{"in":[3]})"), "");
  EXPECT_NE(with(R"("error.message":{"contains":"node"})"), "");
  EXPECT_NE(with(R"("list":{"absent":true})"), "");
  EXPECT_NE(unmet(R"({"status":[200],"json":{"a":1}})", "<html>").find("not JSON"),
            std::string::npos);
}

TEST(RequestCase, streams_are_held_by_their_end_and_text) {
  const std::string body =
      "data: {\"choices\":[{\"delta\":{\"content\":\"the sea\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1,"
      "\"total_tokens\":3}}\n\n"
      "data: [DONE]\n\n";
  const auto with = [&](std::string expect, const std::string& answer) {
    return find_unmet(expecting(std::move(expect), true), {.status = 200, .body = answer});
  };
  EXPECT_EQ(with(R"({"status":[200],"done":true,"finish":["stop"],"text_contains":["sea"],
                     "text_not_contains":["ship"],"usage":true,"utf8":true})",
                 body),
            "");
  EXPECT_NE(with(R"({"status":[200],"done":true})", body.substr(0, 60)), "");
  EXPECT_NE(with(R"({"status":[200],"finish":["length"]})", body).find("stop"), std::string::npos);
  EXPECT_NE(with(R"({"status":[200],"text_contains":["ship"]})", body), "");
  EXPECT_NE(with(R"({"status":[200],"text_not_contains":["sea"]})", body), "");
  EXPECT_NE(with(R"({"status":[200],"utf8":true})", body + "\xff"), "");
  std::string wrong = body;
  wrong.replace(wrong.find("\"total_tokens\":3"), 16, "\"total_tokens\":9");
  EXPECT_NE(with(R"({"status":[200],"usage":true})", wrong), "");
}

}  // namespace
}  // namespace flotilla::api
