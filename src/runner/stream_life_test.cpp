#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include "runner/test_service.h"

// What time, slow readers and leaving clients do to an answer.
namespace flotilla::runner {
namespace {

class StreamLifeTest : public ServiceTest {
 protected:
  // A client that reads only when it is told to.
  boost::asio::local::stream_protocol::socket send_raw(const std::string& body) {
    boost::asio::local::stream_protocol::socket socket(io_);
    socket.connect({path_});
    const std::string bytes = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
    boost::asio::write(socket, boost::asio::buffer(bytes));
    return socket;
  }
  bool idle() {
    return service_->calls() == 0 && service_->load().running + service_->load().waiting == 0;
  }
};

TEST_F(StreamLifeTest, AClientThatLeavesEndsItsSequenceInEveryPhase) {
  fake_.width = 1;
  fake_.per_step = 3ms;
  fake_.step_tokens_max = 16;
  options_.scheduler.limits.step_tokens_max = 16;
  begin();
  const std::string busy = body(R"("ignore_eos":true,"max_tokens":1500,"stream":true)");
  {  // decoding
    auto socket = send_raw(busy);
    run_until([&] { return service_->load().step > 8; });
    socket.close();
    run_until([&] { return idle(); });
  }
  {  // prefilling
    const std::uint64_t step = service_->load().step;
    auto socket = send_raw(body(R"("max_tokens":2)", std::string(1500, 'x')));
    run_until([&] { return service_->load().step > step + 2; });
    socket.close();
    run_until([&] { return idle(); });
    EXPECT_LT(service_->load().step, step + 90) << "the prompt was prefilled to its end";
  }
  {  // waiting behind another
    auto first = send_raw(busy);
    run_until([&] { return service_->load().running == 1; });
    auto second = send_raw(busy);
    run_until([&] { return service_->load().waiting == 1; });
    second.close();
    run_until([&] { return service_->load().waiting == 0 && service_->calls() == 1; });
    first.shutdown(boost::asio::socket_base::shutdown_send);  // the write side alone counts too
    run_until([&] { return idle(); });
  }
  {  // not read yet, or being tokenised
    auto socket = send_raw(body("", std::string(1500, 'x')));
    socket.close();
    run_until([&] { return idle(); });
  }
  EXPECT_EQ(fetch(request(body(R"("max_tokens":2)"))).status, 200);
}

TEST_F(StreamLifeTest, ASlowReaderIsParkedAndGoesOnWhenItReads) {
  fake_.context = 20000;
  options_.call.park_above = 8 << 10;
  options_.call.unpark_below = 4 << 10;
  begin();
  const std::string fields = R"("seed":9,"ignore_eos":true,"max_tokens":2500,"stream":true)";
  auto socket = send_raw(body(fields));
  // Parked: it is held, but neither running nor waiting.
  run_until([&] {
    const auto load = service_->load();
    return service_->calls() == 1 && load.step > 100 && load.running + load.waiting == 0;
  });
  const std::uint64_t step = service_->load().step;
  EXPECT_LT(step, 2400U);
  EXPECT_EQ(fetch(request(body(R"("max_tokens":2)"))).status, 200) << "others are served meanwhile";
  std::string bytes;
  std::array<char, 65536> part;
  run_until([&] {
    boost::system::error_code error;
    if (socket.available(error) > 0)
      bytes.append(part.data(), socket.read_some(boost::asio::buffer(part)));
    return bytes.find("data: [DONE]", std::max<std::size_t>(bytes.size(), 100) - 100) !=
           std::string::npos;
  });
  const Streamed whole = stream(request(body(fields)));
  std::string text;  // the raw bytes still have HTTP's chunk sizes between the blocks
  std::size_t at = 0;
  while ((at = bytes.find("data: {", at)) != std::string::npos) {
    const auto chunk = api::json::parse_object(bytes.substr(at + 6, bytes.find('\n', at) - at - 6));
    at += 6;
    if (!chunk) continue;  // a chunk border inside the block
    const auto& delta = chunk->at("choices").at(0).at("delta").as_object();
    if (delta.contains("content")) text += delta.at("content").as_string();
  }
  EXPECT_EQ(text, whole.text.at(0));
}

TEST_F(StreamLifeTest, WithoutATokenInTimeTheAnswerIs504) {
  fake_.per_step = 300ms;
  begin();
  http::Headers headers = protocol();
  headers.set("Flotilla-Deadline-Ms", "20");
  const http::Response late = fetch(request(body(R"("stream":true)"), headers));
  EXPECT_EQ(late.status, 504) << late.body;
  for (const char* fields : {R"("timeout_s":0.02)", R"("timeout_s":0.02,"stream":true)"}) {
    const http::Response response = fetch(request(body(fields)));
    EXPECT_EQ(response.status, 504) << response.body;
    EXPECT_NE(response.body.find("timeout_s"), std::string::npos) << response.body;
  }
  run_until([&] { return idle(); });
}

TEST_F(StreamLifeTest, AfterTheFirstByteTheDeadlineIsAnErrorEventWithoutDone) {
  fake_.per_step = 5ms;
  begin();
  const Streamed s = stream(request(body(R"("stream":true,"timeout_s":0.2,"ignore_eos":true)")));
  EXPECT_FALSE(s.done);
  EXPECT_NE(s.error.find("timeout_s = 0.2"), std::string::npos) << s.error;
  EXPECT_FALSE(s.text.at(0).empty());
  EXPECT_TRUE(s.finish.empty());
}

TEST_F(StreamLifeTest, TheDeadlineToTheFirstTokenEndsWithTheFirstToken) {
  fake_.per_step = 2ms;
  begin();
  http::Headers headers = protocol();
  headers.set("Flotilla-Deadline-Ms", "300");
  const Streamed s = stream(request(body(R"("ignore_eos":true,"max_tokens":200)"), headers));
  EXPECT_TRUE(s.done) << s.error;
}

TEST_F(StreamLifeTest, ALongSilenceIsFilledWithComments) {
  fake_.per_step = 60ms;
  options_.call.keep_alive = 10ms;
  begin();
  const Streamed s = stream(request(body(R"("stream":true,"max_tokens":2)")));
  EXPECT_TRUE(s.done);
  EXPECT_TRUE(s.bytes.starts_with(": keep-alive\n\n")) << s.bytes.substr(0, 40);
  const http::Response whole = fetch(request(body(R"("max_tokens":2)")));
  EXPECT_TRUE(whole.body.starts_with("{")) << "only streams have comments";
}

}  // namespace
}  // namespace flotilla::runner
