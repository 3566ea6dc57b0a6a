#include "api/error_body.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(ErrorBody, StatusesAreThoseOfTheContract) {
  EXPECT_EQ(http_status(Code::InvalidArgument), 400);
  EXPECT_EQ(http_status(Code::NotFound), 404);
  EXPECT_EQ(http_status(Code::ResourceExhausted), 429);
  EXPECT_EQ(http_status(Code::Internal), 500);
  EXPECT_EQ(http_status(Code::DeadlineExceeded), 504);
  for (int c = 0; c <= static_cast<int>(Code::Cancelled); ++c) {
    EXPECT_EQ(code_of_status(http_status(static_cast<Code>(c))), static_cast<Code>(c));
  }
}

TEST(ErrorBody, OpenAiForm) {
  EXPECT_EQ(
      openai_error_body(
          {.code = Code::InvalidArgument, .message = "n is \"x\"; it must be 1", .param = "n"}),
      R"({"error":{"message":"n is \"x\"; it must be 1","type":"invalid_request_error",)"
      R"("param":"n","code":null}})");
  EXPECT_EQ(
      openai_error_body({.code = Code::NotFound, .message = "m", .reason = "model_not_found"}),
      R"({"error":{"message":"m","type":"invalid_request_error","param":null,)"
      R"("code":"model_not_found"}})");
}

TEST(ErrorBody, ProblemForm) {
  EXPECT_EQ(
      problem_body({.code = Code::Conflict, .message = "loaded otherwise"}),
      R"({"type":"about:blank","title":"conflict","status":409,"detail":"loaded otherwise"})");
}

TEST(ErrorBody, ReadsBackWhatItWrites) {
  const Error error{.code = Code::NotFound, .message = "no m", .param = "model", .reason = "r"};
  for (const auto& body : {openai_error_body(error), problem_body(error)}) {
    const Error back = parse_error_body(404, body);
    EXPECT_EQ(back.code, error.code);
    EXPECT_EQ(back.message, error.message);
    EXPECT_EQ(back.param, error.param);
    EXPECT_EQ(back.reason, error.reason);
  }
  EXPECT_EQ(parse_error_body(502, "<html>").message, "status 502: <html>");
  EXPECT_EQ(parse_error_body(500, R"({"error":"plain"})").message, "plain");
}

}  // namespace
}  // namespace flotilla::api
