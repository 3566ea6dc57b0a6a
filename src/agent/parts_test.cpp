#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "agent/exit_reason.h"
#include "agent/model_hashes.h"
#include "agent/preflight.h"
#include "agent/runner_command.h"
#include "agent/runner_log.h"
#include "agent/telemetry.h"
#include "platform/files.h"

namespace flotilla::agent {
namespace {

namespace fs = std::filesystem;

platform::ExitStatus by_signal(int signal) { return {.exit_code = {}, .signal = signal}; }
platform::ExitStatus by_code(int code) { return {.exit_code = code, .signal = {}}; }

TEST(ExitReason, ACrashAFailureAndAMemoryKillAreTheRunnersOwnFault) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    const auto exited = judge_exit({.status = by_signal(signal)});
    EXPECT_TRUE(exited.own_fault) << signal;
    EXPECT_EQ(exited.signal, signal);
  }
  EXPECT_EQ(judge_exit({.status = by_signal(SIGSEGV)}).reason, "crashed: signal 11 (SIGSEGV)");
  EXPECT_TRUE(judge_exit({.status = by_code(1)}).own_fault);
  EXPECT_EQ(judge_exit({.status = by_code(1), .failure = "no such file"}).reason, "no such file");
  const auto memory = judge_exit({.status = by_signal(SIGKILL), .memory_kill = true});
  EXPECT_TRUE(memory.own_fault);
  EXPECT_NE(memory.reason.find("memory"), std::string::npos);
}

TEST(ExitReason, AKillBySomeoneAStopAndAQuietEndAreNot) {
  EXPECT_FALSE(judge_exit({.status = by_signal(SIGKILL)}).own_fault);
  EXPECT_FALSE(judge_exit({.status = by_signal(SIGTERM)}).own_fault);
  EXPECT_FALSE(judge_exit({.status = by_code(0)}).own_fault);
  // Also when the runner crashes while it is being stopped: nobody's request was in it any more.
  EXPECT_FALSE(judge_exit({.status = by_signal(SIGABRT), .stop_asked = true}).own_fault);
  EXPECT_EQ(judge_exit({.status = by_code(0), .stop_asked = true}).reason, "stopped");
  EXPECT_NE(
      judge_exit({.status = by_signal(SIGKILL), .stop_asked = true, .killed_by_us = true}).reason,
      "stopped");
}

TEST(RunnerProgram, OfAPackageTheBestThatTheProcessorReachesIsTaken) {
  char name[] = "/tmp/flotilla-test-XXXXXX";
  const fs::path root = ::mkdtemp(name);
  const fs::path ours = root / "bin/flotilla";
  EXPECT_EQ(runner_program(ours, 4), ours) << "no package";
  const fs::path best = root / "lib/flotilla/flotilla-x86-64-v4";
  fs::create_directories(best.parent_path());
  std::ofstream(best) << "";
  EXPECT_EQ(runner_program(ours, 4), best);
  EXPECT_EQ(runner_program(ours, 3), ours);
  EXPECT_EQ(runner_program(ours, 0), ours) << "another kind of processor";
  fs::remove_all(root);
}

TEST(RunnerCommand, NamesWhatIsSetAndNothingElse) {
  api::RunnerSpec spec;
  spec.width = 8;
  spec.context = 2048;
  spec.chat_template = "--evil {{x}}";
  spec.alias = "m";
  spec.env = {{"GGML_X", "1"}};
  const auto command = runner_command("/bin/flotilla", spec, "/m/a.gguf", "/s/1.sock");
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->arguments,
            (std::vector<std::string>{"runner", "--supervised", "--unix", "/s/1.sock",
                                      "--breadcrumb", "/s/1.sock.crumb", "--model=/m/a.gguf",
                                      "--width=8", "--context=2048", "--kv-type=f16",
                                      "--chat-template=--evil {{x}}", "--alias=m"}));
  EXPECT_EQ(command->env.at("GGML_X"), "1");
  EXPECT_FALSE(command->env.contains("CUDA_DEVICE_ORDER"));
}

TEST(RunnerCommand, DevicesAreNumberedAsTheirToolNumbersThem) {
  api::RunnerSpec spec;
  spec.env = {{"CUDA_VISIBLE_DEVICES", "0,2"}};
  const auto command = runner_command("f", spec, "m", "s");
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->env.at("CUDA_VISIBLE_DEVICES"), "0,2");
  EXPECT_EQ(command->env.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
}

TEST(RunnerCommand, RefusesWhatWouldLoadOtherCode) {
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PATH", "",
                           "A=B", "lower", "A B"}) {
    api::RunnerSpec spec;
    spec.env = {{name, "x"}};
    EXPECT_FALSE(runner_command("f", spec, "m", "s")) << name;
  }
  api::RunnerSpec spec;
  spec.chat_template = std::string("a\0b", 3);
  EXPECT_FALSE(runner_command("f", spec, "m", "s"));
}

class Files : public testing::Test {
 protected:
  Files() {
    char name[] = "/tmp/flotilla-test-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Files() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(Files, ALogKeepsItsLastLinesAndMovesItsFileAside) {
  RunnerLog log(root_ / "r.log", 100);
  EXPECT_EQ(log.tail(), "");
  log.append("one\ntw");
  log.append("o\nunfinished");
  EXPECT_EQ(log.tail(), "one\ntwo\nunfinished");
  for (int i = 0; i < 50; ++i) log.append("\nline " + std::to_string(i));
  const std::string tail = log.tail();
  EXPECT_EQ(tail.find("two"), std::string::npos);
  EXPECT_TRUE(tail.ends_with("line 48\nline 49"));
  EXPECT_LE(fs::file_size(root_ / "r.log"), 100U);
  EXPECT_LE(fs::file_size(root_ / "r.log.1"), 100U);
  log.append(std::string(100'000, 'x'));
  EXPECT_LE(log.tail().size(), 8192U);
}

TEST_F(Files, ALogThatCannotBeWrittenStillRemembers) {
  RunnerLog log(root_ / "missing" / "r.log");
  log.append("hello\n");
  EXPECT_EQ(log.tail(), "hello\n");
}

TEST(FileName, IsSafe) {
  EXPECT_EQ(file_name_of("local-1-a.b"), "local-1-a.b");
  EXPECT_EQ(file_name_of("../../etc"), "_.._.._etc");
  EXPECT_EQ(file_name_of(""), "_");
  EXPECT_LE(file_name_of(std::string(1000, 'a')).size(), 121U);
}

class Hashes : public Files {
 protected:
  std::string find(ModelHashes& hashes, const std::vector<fs::path>& parts,
                   std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    std::string out = "no answer";
    boost::asio::co_spawn(context_,
                          hashes.find({.first = parts.front(), .parts = parts, .bytes = 0}, limit),
                          [&](std::exception_ptr, std::string hash) { out = std::move(hash); });
    context_.restart();
    context_.run();
    return out;
  }
  boost::asio::io_context context_;
};

TEST_F(Hashes, AreThoseOfTheFileAsItIs) {
  ModelHashes hashes(context_.get_executor(), root_ / "cache");
  std::ofstream(root_ / "a") << "abc";
  EXPECT_EQ(find(hashes, {root_ / "a"}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::ofstream(root_ / "a") << "abcd";
  EXPECT_EQ(find(hashes, {root_ / "a"}),
            "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589");
  EXPECT_EQ(find(hashes, {root_ / "missing"}), "");
  EXPECT_EQ(find(hashes, {root_ / "a", root_ / "missing"}), "");
  std::ofstream(root_ / "b") << "b";
  const std::string both = find(hashes, {root_ / "a", root_ / "b"});
  EXPECT_EQ(both.size(), 64U);
  EXPECT_NE(both, find(hashes, {root_ / "b", root_ / "a"}));
}

TEST_F(Hashes, AreRememberedOverARestartAndOnlyForThatFile) {
  std::ofstream(root_ / "a") << "abc";
  std::string first;
  {
    ModelHashes hashes(context_.get_executor(), root_ / "cache");
    first = find(hashes, {root_ / "a"});
  }
  std::ifstream in(root_ / "cache");
  std::string identity;
  in >> identity;
  std::ofstream(root_ / "cache") << identity << ' ' << std::string(64, '0') << '\n';
  ModelHashes again(context_.get_executor(), root_ / "cache");
  EXPECT_EQ(find(again, {root_ / "a"}), std::string(64, '0'));  // taken from there
  std::ofstream(root_ / "a") << "abc";                          // written anew, later
  fs::last_write_time(root_ / "a", fs::last_write_time(root_ / "a") + std::chrono::seconds(1));
  EXPECT_EQ(find(again, {root_ / "a"}), first);
}

TEST_F(Files, PreflightSaysWhyAModelCannotBeLoaded) {
  api::Preflight question{.request = 7, .spec = {.model = "a.gguf", .models_dir = root_}};
  const auto missing = answer_preflight(question);
  EXPECT_EQ(missing.request, 7);
  EXPECT_FALSE(missing.model_present);
  EXPECT_FALSE(missing.fits);
  EXPECT_GT(missing.free_bytes, 0);
  EXPECT_NE(missing.verdict.find("a.gguf"), std::string::npos);
  std::ofstream(root_ / "a.gguf") << "nonsense";
  const auto broken = answer_preflight(question);
  EXPECT_TRUE(broken.model_present);
  EXPECT_FALSE(broken.fits);
  EXPECT_NE(broken.verdict.find("not a GGUF"), std::string::npos);
  question.spec.synthetic = true;
  EXPECT_TRUE(answer_preflight(question).fits);
}

TEST_F(Files, ModelsAreListedWithWhatIsWrongWithThem) {
  std::ofstream(root_ / "bad.gguf") << "nonsense";
  const auto list = answer_list_models({.request = 3, .models_dir = root_});
  EXPECT_EQ(list.request, 3);
  ASSERT_EQ(list.models.size(), 1U);
  EXPECT_NE(list.models[0].error.find("not a GGUF"), std::string::npos);
  EXPECT_NE(answer_list_models({.models_dir = root_ / "none"}).error, "");
}

TEST_F(Files, ModelFoldersAreListedWithWhatTheirConfigSays) {
  fs::create_directories(root_ / "good");
  fs::create_directories(root_ / "torn");
  for (const char* folder : {"good", "torn"})
    std::ofstream(root_ / folder / "w.safetensors") << "weights";
  std::ofstream(root_ / "good/config.json")
      << R"({"model_type":"qwen2","max_position_embeddings":32768,"quantization":{"bits":4}})";
  std::ofstream(root_ / "torn/config.json") << "{";
  const auto list = answer_list_models({.models_dir = root_});
  ASSERT_EQ(list.models.size(), 2U);
  const api::ModelFile& good = list.models[0];
  EXPECT_EQ(good.path, "good");
  EXPECT_TRUE(good.folder);
  EXPECT_EQ(good.bytes, 7);
  EXPECT_EQ(good.architecture, "qwen2");
  EXPECT_EQ(good.quantization, "4bit");
  EXPECT_EQ(good.context_trained, 32768);
  EXPECT_EQ(good.error, "");
  EXPECT_NE(list.models[1].error.find("config.json"), std::string::npos) << list.models[1].error;
}

TEST(Preflight, TheSampleModelFitsAndAHugeContextDoesNot) {
  const char* path = std::getenv("FLOTILLA_SAMPLE_MODEL");
  if (path == nullptr || !fs::exists(path)) GTEST_SKIP() << "no sample model";
  api::Preflight question{.request = 1, .spec = {.model = path, .width = 2, .context = 1024}};
  const auto answer = answer_preflight(question);
  EXPECT_TRUE(answer.fits) << answer.verdict;
  EXPECT_EQ(answer.quantization, "Q4_1");
  EXPECT_EQ(answer.kv_bytes, 30LL * 3 * 128 * 2 * 1024 * 2);
  question.spec.width = 64;
  question.spec.context = 1 << 24;
  EXPECT_FALSE(answer_preflight(question).fits);
}

TEST(Preflight, WhatIsFreeIsTheDevicesWhereTheNodeNamesThem) {
  const char* path = std::getenv("FLOTILLA_SAMPLE_MODEL");
  if (path == nullptr || !fs::exists(path)) GTEST_SKIP() << "no sample model";
  api::Preflight question{.request = 1, .spec = {.model = path, .width = 2, .context = 1024}};
  question.spec.env["CUDA_VISIBLE_DEVICES"] = "1";
  const std::vector<api::GpuTelemetry> gpus = {
      {.index = 0, .name = "big", .memory_total = 1LL << 40, .memory_free = 1LL << 40},
      {.index = 1, .name = "tiny", .memory_total = 2 << 20, .memory_free = 1 << 20}};
  const auto tiny = answer_preflight(question, gpus);
  EXPECT_TRUE(tiny.on_devices);
  EXPECT_EQ(tiny.free_bytes, 1 << 20);
  EXPECT_FALSE(tiny.fits);
  EXPECT_NE(tiny.verdict.find("(device 1 tiny)"), std::string::npos) << tiny.verdict;
  question.spec.env["CUDA_VISIBLE_DEVICES"] = "0,1";
  EXPECT_EQ(answer_preflight(question, gpus).free_bytes, (1LL << 40) + (1 << 20));
  question.spec.env["CUDA_VISIBLE_DEVICES"] = "7";  // nobody knows it
  EXPECT_FALSE(answer_preflight(question, gpus).on_devices);
}

TEST(Telemetry, LooksAtThisMachine) {
  ManualClock clock;
  Telemetry telemetry(clock);
  EXPECT_EQ(telemetry.look().cpu_load, 0);
  clock.advance(std::chrono::seconds(1));
  const auto second = telemetry.look();
  EXPECT_GE(second.cpu_load, 0);
  EXPECT_GE(second.cores, 1);
  EXPECT_GT(second.memory_total, second.memory_available);
}

}  // namespace
}  // namespace flotilla::agent
