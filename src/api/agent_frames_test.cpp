#include "api/agent_frames.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::api {
namespace {

std::string payload(const std::string& frame) { return frame.substr(4); }

// Encode, cut out of the stream, parse.
template <class T>
T sent(const T& event) {
  FrameReader reader;
  reader.feed(encode_frame(AgentEvent{event}));
  auto frame = reader.next();
  EXPECT_TRUE(frame && *frame);
  auto parsed = parse_event(**frame);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  EXPECT_TRUE(std::holds_alternative<T>(*parsed));
  return std::get<T>(*parsed);
}

RunnerInfo some_info() {
  return {.protocol = 1,
          .description = "llama 135M",
          .quantization = "Q4_1",
          .context = 2048,
          .context_trained = 8192,
          .width = 8,
          .width_reason = "asked for",
          .batch = true,
          .batch_reason = "",
          .model_bytes = 98'362'432,
          .kv_bytes = 5'000'000'000,
          .numerics = "avx2-f16",
          .exact_resume = true,
          .kernels = "stock"};
}

RunnerSpec some_spec() {
  return {.model = "a/b.gguf",
          .models_dir = "/models",
          .width = 8,
          .context = 4096,
          .window = 32768,
          .threads = 2,
          .kv_type = "q8_0",
          .gpu_layers = 99,
          .chat_template = "{{ \"x\" }}\n",
          .alias = "b",
          .node = "local-1",
          .synthetic = true,
          .env = {{"GGML_X", "1"}, {"RUNNER_STEP_TARGET_MS", "50"}}};
}

TEST(AgentFrames, CommandsArriveAsTheyWereSent) {
  const AgentCommand start = StartReplica{"local-1#7", "gen 7", some_spec()};
  const auto frame = encode_frame(start);
  ASSERT_TRUE(frame);
  const auto parsed = parse_command(payload(*frame));
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto& got = std::get<StartReplica>(*parsed);
  EXPECT_EQ(got.replica, "local-1#7");
  EXPECT_EQ(got.generation, "gen 7");
  EXPECT_EQ(got.spec, some_spec());

  const auto stop = parse_command(payload(*encode_frame(AgentCommand{StopReplica{"r", 250}})));
  EXPECT_EQ(std::get<StopReplica>(*stop).grace_ms, 250);
  const auto end = parse_command(payload(*encode_frame(AgentCommand{EndAgent{9}})));
  EXPECT_EQ(std::get<EndAgent>(*end).grace_ms, 9);
  const auto list = parse_command(payload(*encode_frame(AgentCommand{ListModels{4, "/m"}})));
  EXPECT_EQ(std::get<ListModels>(*list).models_dir, "/m");
  const auto beat = parse_command(payload(*encode_frame(AgentCommand{Heartbeat{1, 2}})));
  EXPECT_EQ(std::get<Heartbeat>(*beat).echo_unix_ms, 2);
}

TEST(AgentFrames, EventsArriveAsTheyWereSent) {
  const AgentHello hello =
      sent(AgentHello{.version = "0.1",
                      .platform = "linux-x86_64",
                      .machine_id = "m",
                      .run_dir = "/run",
                      .cores = 2,
                      .memory_bytes = 1,
                      .holds = {{"a", "1", "/s", 7, some_info()}, {"b", "2", "/t", 8, {}}}});
  ASSERT_EQ(hello.holds.size(), 2U);
  EXPECT_EQ(hello.holds[0].info, some_info());
  EXPECT_FALSE(hello.holds[1].info);
  EXPECT_EQ(hello.holds[1].pid, 8);
  EXPECT_EQ(sent(ReplicaReady{"r", some_info()}).info, some_info());
  const ReplicaExited exited = sent(ReplicaExited{.replica = "r", .signal = 11, .own_fault = true});
  EXPECT_EQ(exited.signal, 11);
  EXPECT_FALSE(exited.exit_code);
  EXPECT_TRUE(exited.own_fault);
  EXPECT_FALSE(exited.port_taken);
  EXPECT_TRUE(sent(ReplicaExited{.replica = "e", .port_taken = true}).port_taken);
  const AgentTelemetry telemetry = sent(
      AgentTelemetry{.memory_total = 10, .cpu_load = 1.5, .cores = 2, .replicas = {{"r", 77}}});
  EXPECT_DOUBLE_EQ(telemetry.cpu_load, 1.5);
  EXPECT_EQ(telemetry.replicas.at(0).rss_bytes, 77);
  const AgentTelemetry with_gpu =
      sent(AgentTelemetry{.gpus = {{.index = 1, .name = "g", .memory_free = 5, .power_w = 1.5}}});
  EXPECT_EQ(with_gpu.gpus.at(0).power_w, 1.5);
  EXPECT_FALSE(with_gpu.gpus.at(0).busy_percent);
  EXPECT_EQ(sent(PreflightAnswer{.need_bytes = 5, .fits = true}).need_bytes, 5);
  EXPECT_EQ(sent(AgentRefused{"held by pid 3"}).reason, "held by pid 3");
}

TEST(AgentFrames, TextThatIsNotUtf8DoesNotBreakTheStream) {
  const ReplicaExited exited =
      sent(ReplicaExited{.replica = "r", .log_tail = std::string("a\xFF\0b\x1B[0m", 8)});
  EXPECT_EQ(exited.log_tail, "a\uFFFD b\x1B[0m");
}

TEST(AgentFrames, WhatBurstsAFrameIsCutAndSaid) {
  ModelList list;
  for (int i = 0; i < 5000; ++i)
    list.models.push_back({.path = std::string(200, 'x') + std::to_string(i)});
  const ModelList got = sent(list);
  EXPECT_TRUE(got.truncated);
  EXPECT_GT(got.models.size(), 100U);
  EXPECT_LT(encode_frame(AgentEvent{list}).size(), kAgentFrameMax);
  EXPECT_FALSE(sent(ModelList{.models = {{.path = "a"}}}).truncated);

  AgentHello hello;
  for (int i = 0; i < 100; ++i)
    hello.holds.push_back(
        {std::string(9000, '\x01'), std::string(9000, '\x01'), "", 1, some_info()});
  EXPECT_LE(encode_frame(AgentEvent{hello}).size(), kAgentFrameMax + 4);

  StartReplica start;
  start.spec.chat_template = std::string(kAgentFrameMax, 'x');
  const auto frame = encode_frame(AgentCommand{start});
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Code::TooLarge);
}

TEST(AgentFrames, UnknownMembersAreIgnoredAndUnknownTypesNamed) {
  EXPECT_TRUE(parse_command(R"({"type":"stop","replica":"r","news":[1,2]})"));
  const auto unknown = parse_command(R"({"type":"dance"})");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::NotFound);
  for (const char* bad :
       {"", "{}", "[]", "nonsense", R"({"type":"stop","replica":5})",
        R"({"type":"start","spec":{"width":"8"}})", R"({"type":"start","spec":[]})",
        R"({"type":"start","spec":{"env":{"A":1}}})"}) {
    const auto parsed = parse_command(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Code::InvalidArgument) << bad;
  }
}

TEST(AgentFrames, RunnerLinesAreUnderstood) {
  const auto loading =
      parse_runner_line(R"({"phase":"loading","loaded_bytes":10,"total_bytes":98362432})");
  EXPECT_EQ(std::get<RunnerLoading>(*loading).total_bytes, 98362432);
  const auto ready = parse_runner_line(
      R"({"phase":"ready","info":{"protocol":1,"width":8,"batch":true,"exact_resume":false}})");
  EXPECT_EQ(std::get<RunnerInfo>(*ready).width, 8);
  const auto failed = parse_runner_line(R"({"phase":"failed","error":"no such file"})");
  EXPECT_EQ(std::get<RunnerFailed>(*failed).error, "no such file");
  EXPECT_FALSE(parse_runner_line("hello"));
  EXPECT_FALSE(parse_runner_line(R"({"phase":"ready"})"));
}

TEST(FrameReader, AnyChunkBordersGiveTheSameFrames) {
  std::string stream;
  for (int i = 0; i < 20; ++i)
    stream += encode_frame(
        AgentEvent{ReplicaSpawned{std::string(static_cast<std::size_t>(i * 7), 'r'), i, "/s"}});
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    FrameReader reader;
    int frames = 0;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t step = std::min<std::size_t>(1 + random.below(seed), stream.size() - at);
      reader.feed(std::string_view(stream).substr(at, step));
      at += step;
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
        const auto event = parse_event(**frame);
        ASSERT_TRUE(event);
        EXPECT_EQ(std::get<ReplicaSpawned>(*event).pid, frames++);
      }
    }
    EXPECT_EQ(frames, 20);
  }
}

TEST(FrameReader, ALengthOutOfBoundsIsFinal) {
  for (const std::string& head :
       {std::string("\x00\x00\x00\x00", 4), std::string("\x00\x10\x00\x01", 4),
        std::string("HTTP/1.1 400 Bad Request")}) {
    FrameReader reader;
    reader.feed(head);
    EXPECT_FALSE(reader.next());
    reader.feed(encode_frame(AgentEvent{AgentRefused{"x"}}));
    EXPECT_FALSE(reader.next());
  }
}

TEST(FrameReader, RandomBytesNeverCrash) {
  const std::string good = *encode_frame(AgentCommand{StartReplica{"r", "g", some_spec()}});
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string bytes = good;
    for (std::uint64_t i = 0; i < 1 + random.below(4); ++i)
      bytes[static_cast<std::size_t>(random.below(bytes.size()))] =
          static_cast<char>(random.next());
    FrameReader reader;
    reader.feed(bytes);
    const auto frame = reader.next();
    if (frame && *frame) (void)parse_command(**frame);
  }
}

}  // namespace
}  // namespace flotilla::api
