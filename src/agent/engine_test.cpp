#include <filesystem>
#include <fstream>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include "agent/engine_command.h"
#include "agent/preflight.h"
#include "agent/served_model.h"

namespace flotilla::agent {
namespace {

namespace fs = std::filesystem;

class ServedModelTest : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) /
           testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root);
    write("folder/config.json", R"({"model_type":"llama","model_file":"own.py"})");
    write("folder/model.safetensors", std::string(1000, 'x'));
    write("file/model.gguf", "GGUF");
    write("empty/readme", "");
    spec.models_dir = root;
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  static api::EngineSpec engine() {
    return {.name = "mlx", .command = {"serve", "--model", "{model}", "--port={port}"}};
  }

  fs::path root;
  api::RunnerSpec spec;
};

TEST_F(ServedModelTest, a_file_is_our_runners_unless_an_engine_was_asked_for) {
  spec.model = "file";
  spec.engine = engine();
  spec.engine->folders_only = true;
  auto served = find_served(spec);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_FALSE(served->by_engine);
  EXPECT_EQ(served->files.first.filename(), "model.gguf");
  spec.engine->folders_only = false;
  served = find_served(spec);
  ASSERT_TRUE(served);
  EXPECT_TRUE(served->by_engine);
}

TEST_F(ServedModelTest, a_folder_is_an_engines_and_keeps_to_the_models_folder) {
  spec.model = "folder";
  auto served = find_served(spec);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_TRUE(served->folder);
  EXPECT_FALSE(served->by_engine);
  spec.engine = engine();
  spec.engine->folders_only = true;
  served = find_served(spec);
  ASSERT_TRUE(served);
  EXPECT_TRUE(served->by_engine);
  EXPECT_EQ(served->files.bytes, 1000);
  spec.models_dir = (root / "empty").string();
  spec.model = "../folder";
  EXPECT_EQ(find_served(spec).error().code, Code::PermissionDenied);
  spec.models_dir = root.string();
  spec.model = "empty";
  EXPECT_FALSE(find_served(spec));
}

TEST_F(ServedModelTest, a_name_is_not_looked_for) {
  spec.model = "llama3.2:1b";
  spec.engine = engine();
  spec.engine->model_by_name = true;
  const auto served = find_served(spec);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->files.first, "llama3.2:1b");
  const auto answer = answer_preflight({.request = 1, .spec = spec});
  EXPECT_TRUE(answer.model_present && answer.fits);
  EXPECT_EQ(answer.verdict, "mlx finds its model by name");
  EXPECT_EQ(answer.need_bytes, 0);
}

TEST_F(ServedModelTest, what_was_not_asked_of_an_engine_that_knows_names_is_looked_for) {
  spec.engine = engine();
  spec.engine->model_by_name = true;
  spec.engine->folders_only = true;
  spec.model = "folder";
  const auto answer = answer_preflight({.request = 1, .spec = spec});
  EXPECT_TRUE(answer.folder) << answer.verdict;
}

TEST_F(ServedModelTest, a_name_is_no_option_of_the_engine) {
  spec.engine = engine();
  spec.engine->model_by_name = true;
  for (const char* name : {"", "--trust-remote-code", "-m", "a\nb"}) {
    spec.model = name;
    EXPECT_FALSE(find_served(spec)) << name;
    EXPECT_FALSE(answer_preflight({.request = 1, .spec = spec}).fits) << name;
  }
}

TEST_F(ServedModelTest, preflight_estimates_a_folder_and_warns_of_its_module) {
  api::Preflight question;
  question.spec = spec;
  question.spec.model = "folder";
  const auto answer = answer_preflight(question);
  EXPECT_TRUE(answer.model_present && answer.folder && answer.estimated && answer.fits);
  EXPECT_EQ(answer.weights_bytes, 1000);
  EXPECT_EQ(answer.need_bytes, 1150);
  EXPECT_NE(answer.advice.find("own.py"), std::string::npos);
}

TEST_F(ServedModelTest, the_command_is_the_holders_with_the_models_place_and_the_port_in_it) {
  spec.engine = engine();
  spec.engine->cwd = "/opt";
  spec.engine->env = {{"AT", "127.0.0.1:{port}"}};
  spec.env = {{"OMP_NUM_THREADS", "2"}};
  const auto command = engine_command("/bin/flotilla", spec, "/m/{port}", 81);
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->arguments, (std::vector<std::string>{"agent", "--hold-engine", "--", "serve",
                                                          "--model", "/m/{port}", "--port=81"}));
  EXPECT_EQ(command->working_dir, "/opt");
  EXPECT_EQ(command->env.at("AT"), "127.0.0.1:81");
  EXPECT_EQ(command->env.at("OMP_NUM_THREADS"), "2");
  EXPECT_FALSE(engine_command("/bin/flotilla", spec, std::string("/m\0x", 4), 81));
}

TEST_F(ServedModelTest, an_engine_sees_devices_in_the_order_of_their_tool_or_its_templates) {
  spec.engine = engine();
  spec.env = {{"CUDA_VISIBLE_DEVICES", "1"}};
  const auto ordered = engine_command("/bin/flotilla", spec, "/m", 81);
  ASSERT_TRUE(ordered) << ordered.error().message;
  EXPECT_EQ(ordered->env.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  spec.engine->env = {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}};
  const auto own = engine_command("/bin/flotilla", spec, "/m", 81);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->env.at("CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
}

TEST_F(ServedModelTest, a_command_that_would_not_be_what_it_looks_like_is_not_started) {
  const auto refused = [](const api::EngineSpec& engine) {
    api::RunnerSpec asked;
    asked.engine = engine;
    const auto command = engine_command("/bin/flotilla", asked, "/m", 81);
    return command ? std::string() : command.error().message;
  };
  EXPECT_EQ(refused({.name = "e", .command = {"sh", "-c", "one\ntwo"}}), "") << "a script";
  EXPECT_NE(refused({.name = "e"}).find("is empty"), std::string::npos);
  EXPECT_NE(refused({.name = "e", .command = {"ser\rve"}}).find("program"), std::string::npos);
  EXPECT_NE(refused({.name = "e", .command = {"serve"}, .cwd = "/opt\n"}).find("cwd"),
            std::string::npos);
  EXPECT_NE(refused({.name = "e", .command = {"serve"}, .env = {{"A", std::string(1, '\0')}}})
                .find("NUL"),
            std::string::npos);
}

TEST(ChoosePort, is_one_that_nobody_has_nor_was_given) {
  boost::asio::io_context io;
  std::set<int> given;
  for (int i = 0; i < 100; ++i) {
    const auto port = choose_port(io.get_executor(), given);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_GT(*port, 1023);
    EXPECT_TRUE(given.insert(*port).second) << *port;
  }
}

TEST(ChoosePort, tells_who_listens_from_who_does_not) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  const auto listened = [&io](int port) {
    bool out = false;
    boost::asio::co_spawn(io, is_listened_at(io.get_executor(), port),
                          [&out](const std::exception_ptr&, bool is) { out = is; });
    io.restart();
    io.run();
    return out;
  };
  tcp::acceptor somebody(io, {boost::asio::ip::address_v4::loopback(), 0});
  const int port = somebody.local_endpoint().port();
  EXPECT_TRUE(listened(port));
  somebody.close();
  EXPECT_FALSE(listened(port));
}

}  // namespace
}  // namespace flotilla::agent
