#include "gateway/sender.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

TEST(Sender, goes_with_the_request_as_what_it_was_found_to_be) {
  http::Request request;
  EXPECT_EQ(known_sender(request), nullptr);
  request.sender = as_sender(Caller{.key = "k", .owner = "k"});
  ASSERT_NE(known_sender(request), nullptr);
  ASSERT_TRUE(std::holds_alternative<Caller>(*known_sender(request)));
  EXPECT_EQ(std::get<Caller>(*known_sender(request)).key, "k");
  request.sender = as_sender(Administrator{});
  EXPECT_TRUE(std::holds_alternative<Administrator>(*known_sender(request)));
}

TEST(Sender, is_none_that_another_put_there) {
  http::Request request;
  request.sender = Caller{.key = "k", .owner = "k"};
  EXPECT_EQ(known_sender(request), nullptr) << "the guard looks again";
}

}  // namespace
}  // namespace flotilla::gateway
