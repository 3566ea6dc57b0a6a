#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "gateway/parse_body.h"
#include "gateway/relay.h"

namespace flotilla::gateway {
namespace {

class EngineBody : public testing::Test {
 protected:
  EngineBody() {
    job_.text = &thread_;
    engine_.name = "mlx";
    engine_.model = "m";
  }
  ~EngineBody() override { thread_.join(); }

  void ask() {
    body_.reset();
    boost::asio::co_spawn(
        io_, engine_body_of(job_, engine_),
        [this](const std::exception_ptr&, Result<std::string> body) { body_ = std::move(body); });
    io_.restart();
  }

  static std::string chat(std::size_t bytes) {
    return R"({"model":"p","messages":[{"role":"user","content":")" + std::string(bytes, 'x') +
           R"("}]})";
  }

  boost::asio::io_context io_;
  BlockingThread thread_;
  ChatJob job_;
  api::ForeignEngine engine_;
  std::optional<Result<std::string>> body_;
};

TEST_F(EngineBody, is_made_of_what_the_one_parse_left_however_often_it_is_sent) {
  auto read = api::read_served_chat(chat(1), {.names = {"p"}});
  ASSERT_TRUE(read) << read.error().message;
  job_.for_engines = std::move(read->for_engines);
  job_.body = "nobody reads this";
  for (int i = 0; i < 2; ++i) {
    ask();
    io_.run();
    ASSERT_TRUE(body_ && *body_);
    EXPECT_EQ(**body_, R"({"messages":[{"role":"user","content":"x"}],"model":"m","stream":true,)"
                       R"("stream_options":{"include_usage":true}})");
  }
}

TEST_F(EngineBody, of_a_large_request_to_a_late_engine_is_made_once_and_beside_the_io_thread) {
  job_.body = chat(2 * kParseHere);
  const std::string sent = job_.body;
  std::promise<void> busy;
  boost::asio::co_spawn(io_, thread_.run([wait = busy.get_future().share()] {
    wait.wait();
    return true;
  }),
                        [](const std::exception_ptr&, bool) {});
  ask();
  io_.poll();
  EXPECT_FALSE(body_) << "it was parsed here";
  busy.set_value();
  io_.run();
  ASSERT_TRUE(body_ && *body_);
  EXPECT_EQ(job_.body, sent);
  job_.body = "nobody reads this again";
  ask();
  io_.run();
  ASSERT_TRUE(body_ && *body_);
  EXPECT_EQ(**body_, api::engine_body(*job_.for_engines, engine_, ""));
}

TEST_F(EngineBody, has_the_salt_of_its_cache_group_and_not_the_groups_name) {
  job_.body = chat(1);
  job_.cache_secret = "secret";
  engine_.salts_cache = true;
  std::vector<std::string> bodies;
  for (const char* group : {"", "key-1", "key-1", "group team"}) {
    job_.cache_group = group;
    ask();
    io_.run();
    ASSERT_TRUE(body_ && *body_);
    bodies.push_back(**body_);
    EXPECT_EQ(bodies.back().find("key-1"), std::string::npos);
    EXPECT_EQ(bodies.back().find("team"), std::string::npos);
  }
  EXPECT_EQ(bodies[0].find("cache_salt"), std::string::npos);
  EXPECT_NE(bodies[1].find(R"("cache_salt":")"), std::string::npos);
  EXPECT_EQ(bodies[1], bodies[2]);
  EXPECT_NE(bodies[2], bodies[3]);
}

TEST_F(EngineBody, is_refused_for_what_this_engine_lacks) {
  engine_.lacks = {"n"};
  job_.body = R"({"model":"p","messages":[{"role":"user","content":"x"}],"n":2})";
  ask();
  io_.run();
  ASSERT_TRUE(body_);
  ASSERT_FALSE(*body_);
  EXPECT_EQ(body_->error().param, "n");
}

}  // namespace
}  // namespace flotilla::gateway
