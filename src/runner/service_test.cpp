#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "platform/process.h"
#include "runner/test_service.h"

namespace flotilla::runner {
namespace {

TEST_F(ServiceTest, StreamedAndWholeAnswersAreTheSame) {
  begin();
  const std::string fields = R"("seed":7,"max_tokens":60,"n":3)";
  const auto whole = answer(body(fields));
  const Streamed streamed = stream(request(body(fields + R"(,"stream":true)")));
  EXPECT_TRUE(streamed.done && streamed.role_first);
  ASSERT_EQ(streamed.text.size(), 3U);
  for (int choice = 0; choice < 3; ++choice) {
    const auto& of = whole.at("choices").at(choice);
    EXPECT_EQ(of.at("index"), choice);
    EXPECT_EQ(of.at("message").at("role"), "assistant");
    EXPECT_EQ(std::string(of.at("message").at("content").as_string()), streamed.text.at(choice));
    EXPECT_EQ(std::string(of.at("finish_reason").as_string()), streamed.finish.at(choice));
  }
  EXPECT_NE(streamed.text.at(0), streamed.text.at(1));
  EXPECT_EQ(whole.at("model"), "m");
  EXPECT_EQ(whole.at("object"), "chat.completion");
  const auto& usage = whole.at("usage");
  EXPECT_EQ(usage.at("prompt_tokens").as_int64() + usage.at("completion_tokens").as_int64(),
            usage.at("total_tokens").as_int64());
  EXPECT_TRUE(streamed.tokens.empty() && !streamed.usage) << "comments without protocol";
}

TEST_F(ServiceTest, TheFirstOfManyChoicesIsThatOfOne) {
  begin();
  const auto one = answer(body(R"("seed":7,"max_tokens":30)"));
  const auto two = answer(body(R"("seed":7,"max_tokens":30,"n":2)"));
  EXPECT_EQ(one.at("choices").at(0).at("message"), two.at("choices").at(0).at("message"));
}

TEST_F(ServiceTest, AnswersEndAtTheirLimitAndAtTheEdgeOfTheContext) {
  fake_.context = 128;
  begin();
  const auto one = answer(body(R"("max_tokens":1,"ignore_eos":true)"));
  EXPECT_EQ(one.at("usage").at("completion_tokens"), 1);
  EXPECT_EQ(one.at("choices").at(0).at("finish_reason"), "length");
  for (const char* fields : {R"("ignore_eos":true)", R"("ignore_eos":true,"max_tokens":100000)"}) {
    const auto edge = answer(body(fields));
    EXPECT_EQ(edge.at("usage").at("total_tokens"), 128);
    EXPECT_EQ(edge.at("choices").at(0).at("finish_reason"), "length");
  }
}

TEST_F(ServiceTest, StopStringsAreNeverShown) {
  begin();
  const std::string fields = R"("seed":3,"temperature":0,"ignore_eos":true,"max_tokens":120)";
  const std::string all(
      answer(body(fields)).at("choices").at(0).at("message").at("content").as_string());
  ASSERT_GT(all.size(), 40U);
  // A stop from the middle of the text, at borders of characters.
  std::size_t from = 30;
  while ((static_cast<unsigned char>(all[from]) & 0xC0U) == 0x80U) ++from;
  std::size_t to = from + 4;
  while ((static_cast<unsigned char>(all[to]) & 0xC0U) == 0x80U) ++to;
  const std::string stop = all.substr(from, to - from);
  const auto cut = answer(body(fields + R"(,"stop":[")" + stop + R"("])"));
  EXPECT_EQ(std::string(cut.at("choices").at(0).at("message").at("content").as_string()),
            all.substr(0, all.find(stop)));
  EXPECT_EQ(cut.at("choices").at(0).at("finish_reason"), "stop");
}

// The source tree's tests/golden: the build folder is inside the tree.
std::filesystem::path golden_dir() {
  std::filesystem::path dir = platform::executable_path().parent_path();
  while (dir.has_relative_path() && !std::filesystem::exists(dir / "tests/golden")) {
    dir = dir.parent_path();
  }
  return dir / "tests/golden";
}

TEST_F(ServiceTest, WireBytesOfAStreamAreThoseOfTheGoldenFile) {
  still_.advance(std::chrono::hours(24 * 365 * 20));  // far ahead: no timer of the loop is due
  service_clock_ = &still_;
  begin();
  const auto check = [this](const char* name, const std::string& fields,
                            const http::Headers& headers) {
    const std::string bytes = fetch(request(body(fields), headers)).body;
    const auto path = golden_dir() / name;
    if (std::getenv("UPDATE") != nullptr) {
      std::ofstream(path, std::ios::binary) << bytes;
    }
    std::stringstream golden;
    golden << std::ifstream(path, std::ios::binary).rdbuf();
    EXPECT_EQ(bytes, golden.str()) << name << "; UPDATE=1 rewrites it";
  };
  const std::string fields = R"("stream":true,"seed":5,"max_tokens":12)";
  check("chat_stream.txt", fields, protocol());
  check("chat_stream_usage.txt", fields + R"(,"stream_options":{"include_usage":true})",
        protocol());
  check("chat_stream_stop.txt", fields + R"(,"stop":["rk"])", protocol());
}

TEST_F(ServiceTest, WithProtocolTokensTellTheTextAndUsageAddsUp) {
  begin();
  const Streamed s = stream(request(body(R"("max_tokens":50,"n":2,"stream":false)"), protocol()));
  EXPECT_TRUE(s.done && s.role_first);
  ASSERT_TRUE(s.usage);
  std::int64_t tokens = 0;
  for (const auto& [choice, ids] : s.tokens) {
    tokens += static_cast<std::int64_t>(ids.size());
    std::string pieces;
    for (const auto id : ids) pieces += id < 256 ? std::string(1, static_cast<char>(id)) : "";
    EXPECT_TRUE(pieces.starts_with(s.text.at(choice).substr(0, s.text.at(choice).size() - 3)));
  }
  EXPECT_EQ(s.usage->usage.completion_tokens, tokens);
  EXPECT_NE(s.bytes.find(R"("model":"asked")"), std::string::npos);
  EXPECT_NE(s.bytes.find(R"("id":"chatcmpl-r1")"), std::string::npos);
  EXPECT_NE(s.bytes.find(R"("x_flotilla":{"node":"node-1")"), std::string::npos);
}

TEST_F(ServiceTest, OverTcpTheGatewaysHeadersMeanNothing) {
  begin();
  const auto port = service_->listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(port);
  http::Client tcp(io_.get_executor(),
                   {.unix_path = {}, .host = "127.0.0.1", .port = *port, .base_path = {}});
  const auto response =
      run(tcp.fetch(request(body(R"("stream":true,"max_tokens":5)"), protocol()), 20s));
  ASSERT_TRUE(response);
  const Streamed s(response->body);
  EXPECT_TRUE(s.done && s.tokens.empty() && !s.usage);
  EXPECT_EQ(s.bytes.find("chatcmpl-r1"), std::string::npos);
}

TEST_F(ServiceTest, OverTcpAnotherSitesPageGetsNothing) {
  begin();
  const auto port = service_->listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(port);
  http::Client tcp(io_.get_executor(),
                   {.unix_path = {}, .host = "127.0.0.1", .port = *port, .base_path = {}});
  http::Request form = request(body(R"("max_tokens":5)"));
  form.headers.set("Content-Type", "text/plain");
  EXPECT_EQ(run(tcp.fetch(form, 20s))->status, 415);
  http::Request drain = request("{}");
  drain.target = "/runner/drain";
  EXPECT_EQ(run(tcp.fetch(drain, 20s))->status, 403);
  EXPECT_EQ(run(tcp.fetch(request(body(R"("max_tokens":5)")), 20s))->status, 200);
}

TEST_F(ServiceTest, RefusesWithTheReason) {
  fake_.context = 256;
  begin();
  const auto refused = [this](http::Request r, int status, std::string_view says) {
    const http::Response response = fetch(std::move(r));
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_NE(response.body.find(says), std::string::npos) << response.body;
    EXPECT_TRUE(response.body.starts_with(R"({"error":{"message":)")) << response.body;
  };
  refused(request("{"), 400, "invalid_request_error");
  refused(request(R"({"model":"no-such","messages":[{"role":"user","content":"x"}]})"), 404,
          "no-such");
  refused(request(body("", std::string(400, 'x'))), 400, "context_length_exceeded");
  refused(request(body("", std::string(100'000, 'x'))), 400, "256");
  refused(request(body(R"("logit_bias":{"99999":1})")), 400, "99999");
  refused(request(body(R"("continue_final_message":true)")), 400, "assistant");
  http::Headers other = protocol();
  other.set("Flotilla-Protocol", "2");
  refused(request(body(""), other), 400, "protocol 2");
  http::Headers bad = protocol();
  bad.set("Flotilla-Seed", "x");
  refused(request(body(""), bad), 400, "Flotilla-Seed");
  http::Request wrong = request("");
  wrong.method = "DELETE";
  refused(wrong, 405, "DELETE");
  wrong.target = "/v1/nothing";
  refused(wrong, 404, "/v1/nothing");
  EXPECT_EQ(service_->load().waiting + service_->load().running, 0);
}

TEST_F(ServiceTest, ARequestsPromptCountsOnceHoweverManyAnswersItWants) {
  options_.scheduler.store_bytes_max = 64 << 20;
  begin();
  std::int64_t prompts = 0;
  std::int64_t cached = 0;
  std::int64_t generated = 0;
  const auto add = [&](const std::string& path, const std::string& text) {
    http::Request asked = request(text);
    asked.target = path;
    const auto answer = api::json::parse_object(fetch(std::move(asked)).body);
    ASSERT_TRUE(answer && answer->contains("usage")) << text;
    const auto& usage = answer->at("usage");
    prompts += usage.at("prompt_tokens").as_int64();
    cached += usage.at("prompt_tokens_details").at("cached_tokens").as_int64();
    generated += usage.at("completion_tokens").as_int64();
    const api::RunnerEvent load = service_->load();
    EXPECT_EQ(load.prompt_tokens, prompts) << text;
    EXPECT_EQ(load.cached_tokens, cached) << text;
    EXPECT_EQ(load.generated_tokens, generated) << text;
  };
  const std::string fields = R"("max_tokens":6,"ignore_eos":true,"n":)";
  for (const char* n : {"4", "4", "1"}) add("/v1/chat/completions", body(fields + n, "short"));
  const std::string other(300, 'x');  // so long that its choices wait for the first one's cells
  for (const char* n : {"4", "1"}) add("/v1/chat/completions", body(fields + n, other));
  EXPECT_GT(cached, 0);
  for (const char* n : {"1", "2"}) {
    add("/v1/completions",
        R"({"model":"m",)" + fields + n + R"(,"prompt":["one prompt","and another one"]})");
  }
}

TEST_F(ServiceTest, ModelsAndHealth) {
  begin();
  http::Request get;
  get.target = "/v1/models";
  EXPECT_NE(fetch(get).body.find(R"("id":"m")"), std::string::npos);
  get.target = "/v1/models/m";
  EXPECT_EQ(fetch(get).status, 200);
  get.target = "/v1/models/other";
  EXPECT_EQ(fetch(get).status, 404);
  get.target = "/health";
  EXPECT_EQ(fetch(get).body, R"({"status":"idle"})");
}

TEST_F(ServiceTest, AFullRunnerSaysSoAndServesOn) {
  options_.scheduler.sequences_max = 2;
  begin();
  const http::Response full = fetch(request(body(R"("n":3,"max_tokens":5)")));
  EXPECT_EQ(full.status, 429);
  EXPECT_TRUE(full.headers.find("retry-after"));
  run_until([&] { return fetch(request(body(R"("n":2,"max_tokens":5)"))).status == 200; });
}

TEST_F(ServiceTest, DrainingRefusesNewRequestsAndFinishesOld) {
  fake_.per_step = 2ms;
  begin();
  auto open =
      run(client_->open(request(body(R"("stream":true,"max_tokens":40,"ignore_eos":true)")), 20s));
  ASSERT_TRUE(open);
  http::Request drain;
  drain.method = "POST";
  drain.target = "/runner/drain";
  EXPECT_EQ(fetch(drain).body, R"({"draining":true,"requests":1})");
  EXPECT_EQ(fetch(request(body(""))).status, 503);
  std::string bytes;
  while (true) {
    const auto part = run((*open)->read(20s));
    ASSERT_TRUE(part) << part.error().message;
    if (part->empty()) break;
    bytes += *part;
  }
  const Streamed s(bytes);
  EXPECT_TRUE(s.done);
  EXPECT_EQ(s.finish.at(0), "length");
}

TEST_F(ServiceTest, EventsTellOfWorkAndOfRest) {
  fake_.per_step = 1ms;
  begin();
  http::Request get;
  get.target = "/runner/events";
  auto open = run(client_->open(get, 20s));
  ASSERT_TRUE(open);
  auto answering =
      run(client_->open(request(body(R"("stream":true,"max_tokens":400,"ignore_eos":true)")), 20s));
  ASSERT_TRUE(answering);
  bool worked = false;
  std::optional<api::RunnerEvent> last;
  http::SseSplitter splitter;
  while (!worked || !last || last->running > 0) {
    const auto part = run((*open)->read(20s));
    ASSERT_TRUE(part && !part->empty());
    ASSERT_TRUE(splitter.feed(*part, [&](std::string_view block) {
      const auto event = api::parse_runner_event(http::sse_data(block));
      ASSERT_TRUE(event);
      worked = worked || (event->running == 1 && event->step > 0 && event->kv_free > 0);
      last = *event;
    }));
    if (worked && answering) answering = fail(Code::Cancelled, "seen");  // closes it
  }
  EXPECT_EQ(last->running + last->waiting, 0);
}

}  // namespace
}  // namespace flotilla::runner
