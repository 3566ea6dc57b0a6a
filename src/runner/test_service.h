#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "api/json.h"
#include "api/runner_protocol.h"
#include "base/random.h"
#include "engine/fake_engine.h"
#include "http/client.h"
#include "http/sse.h"
#include "runner/service.h"

// For the tests of this folder: a whole runner with the synthetic engine on a unix socket, and a
// client on the same loop.
namespace flotilla::runner {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

// An answer's stream, taken apart.
struct Streamed {
  std::string bytes;
  std::map<int, std::string> text;  // by choice
  std::map<int, std::string> finish;
  std::map<int, api::TokenIds> tokens;
  std::vector<std::string> blocks;
  std::optional<api::RunnerUsage> usage;
  std::string error;  // of an error event
  bool done = false;
  bool role_first = true;  // each choice began with its role, once

  explicit Streamed(std::string all) : bytes(std::move(all)) {
    std::map<int, int> roles;
    http::SseSplitter splitter;
    EXPECT_TRUE(splitter.feed(bytes, [&](std::string_view block) { take(block, roles); }));
    EXPECT_TRUE(splitter.empty()) << "the stream ends inside a block";
  }

 private:
  void take(std::string_view block, std::map<int, int>& roles) {
    blocks.emplace_back(block);
    const std::string_view line = block.substr(0, block.find('\n'));
    if (const auto comment = api::parse_token_comment(line)) {
      auto& ids = tokens[comment->choice];
      ids.insert(ids.end(), comment->ids.begin(), comment->ids.end());
    }
    if (const auto read = api::parse_usage_comment(line)) usage = read;
    const std::string data = http::sse_data(block);
    if (data == "[DONE]") done = true;
    if (data.empty() || data == "[DONE]") return;
    const auto chunk = api::json::parse_object(data);
    ASSERT_TRUE(chunk) << data;
    if (const auto* failed = chunk->if_contains("error")) {
      error = std::string(failed->at("message").as_string());
      return;
    }
    for (const auto& choice : chunk->at("choices").as_array()) {
      const int index = static_cast<int>(choice.at("index").as_int64());
      const auto& delta = choice.at("delta").as_object();
      if (delta.contains("role")) ++roles[index];
      if (roles[index] != 1) role_first = false;
      if (const auto* content = delta.if_contains("content")) text[index] += content->as_string();
      if (choice.at("finish_reason").is_string()) {
        EXPECT_FALSE(finish.contains(index));
        finish[index] = std::string(choice.at("finish_reason").as_string());
      }
    }
  }
};

class ServiceTest : public testing::Test {
 protected:
  boost::asio::io_context io_{1};
  SystemClock clock_;
  ManualClock still_;
  engine::FakeOptions fake_{
      .width = 4, .context = 2048, .step_tokens_max = 512, .per_step = {}, .per_token = {}};
  ServiceOptions options_;
  const Clock* service_clock_ = &clock_;
  std::string path_ = "/tmp/flotilla-runner-test-" + random_hex(6) + ".sock";
  std::unique_ptr<Service> service_;
  std::unique_ptr<http::Client> client_;

  ServiceTest() { options_.alias = "m"; }

  ~ServiceTest() override {
    if (service_) {
      run(service_->shutdown(1s));
      run_until([&] { return service_->calls() == 0; });
    }
    client_.reset();
    service_.reset();
    std::remove(path_.c_str());
  }

  void begin() {
    options_.scheduler.limits.width = fake_.width;
    options_.scheduler.limits.context = fake_.context;
    options_.scheduler.limits.step_tokens_max = fake_.step_tokens_max;
    options_.scheduler.limits.whole_prompts = fake_.whole_prompts;
    service_ = std::make_unique<Service>(io_.get_executor(), engine::make_fake_model(fake_),
                                         options_, *service_clock_);
    ASSERT_TRUE(service_->listen_unix(path_));
    client_ = std::make_unique<http::Client>(io_.get_executor(),
                                             http::Endpoint{.unix_path = path_, .base_path = {}});
  }

  template <class T>
  T run(Awaitable<T> task) {
    std::optional<T> out;
    bool done = false;
    boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr error, T value) {
      EXPECT_FALSE(error);
      out = std::move(value);
      done = true;
    });
    run_until([&] { return done; });
    return std::move(*out);
  }
  void run(Awaitable<void> task) {
    bool done = false;
    boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr error) {
      EXPECT_FALSE(error);
      done = true;
    });
    run_until([&] { return done; });
  }
  // Runs the loop until `condition` holds; a test that waits 20 s has failed.
  void run_until(const std::function<bool()>& condition) {
    const Instant end = clock_.now() + 20s;
    while (!condition()) {
      io_.restart();
      io_.run_one_for(2ms);
      if (clock_.now() < end) continue;
      ADD_FAILURE() << "the condition did not come";
      std::abort();  // coroutines refer to this frame
    }
  }

  static std::string body(const std::string& fields, const std::string& content = "hello there") {
    return R"({"model":"m","messages":[{"role":"user","content":")" + content + R"("}])" +
           (fields.empty() ? "" : "," + fields) + "}";
  }
  static http::Request request(std::string body, http::Headers headers = {}) {
    http::Request out;
    out.method = "POST";
    out.target = "/v1/chat/completions";
    out.headers = std::move(headers);
    out.headers.set("Content-Type", "application/json");
    out.body = std::move(body);
    return out;
  }
  static http::Headers protocol() {
    return {{"Flotilla-Protocol", "1"},  {"Flotilla-Request-Id", "r1"},
            {"Flotilla-Alias", "asked"}, {"Flotilla-Created", "1700000000"},
            {"Flotilla-Node", "node-1"}, {"Flotilla-Queued-Ms", "1.5"},
            {"Flotilla-Seed", "42"}};
  }
  http::Response fetch(http::Request request) {
    auto response = run(client_->fetch(std::move(request), 20s));
    EXPECT_TRUE(response) << response.error().message;
    return response ? std::move(*response) : http::Response{.status = 0, .headers = {}, .body = {}};
  }
  Streamed stream(http::Request request) {
    http::Response response = fetch(std::move(request));
    EXPECT_EQ(response.status, 200) << response.body;
    return Streamed(std::move(response.body));
  }
  api::json::Object answer(const std::string& body) {
    const http::Response response = fetch(request(body));
    EXPECT_EQ(response.status, 200) << response.body;
    auto object = api::json::parse_object(response.body);
    return object ? std::move(*object) : api::json::Object{};
  }
};

}  // namespace flotilla::runner
