#include "config/engines.h"

#include <gtest/gtest.h>

namespace flotilla::config {
namespace {

Result<std::vector<api::EngineTemplate>> read(std::string_view text) {
  const auto root = parse_yaml(text, "f.yaml");
  EXPECT_TRUE(root) << root.error().message;
  return read_engines(root ? *root : Node{});
}

std::string error_of(std::string_view text) {
  const auto engines = read(text);
  EXPECT_FALSE(engines) << text;
  return engines ? std::string() : engines.error().message;
}

TEST(Engines, one_of_a_shipped_name_begins_with_it) {
  const auto engines = read("mlx:\nvllm:\n  program: /opt/vllm/bin/vllm\n  cwd: /opt/vllm\n");
  ASSERT_TRUE(engines) << engines.error().message;
  ASSERT_EQ(engines->size(), 2u);
  EXPECT_EQ((*engines)[0].command.front().front(), "mlx_lm.server");
  EXPECT_EQ((*engines)[1].command.front(),
            (std::vector<std::string>{"/opt/vllm/bin/vllm", "serve", "{model}"}));
  EXPECT_EQ((*engines)[1].cwd, "/opt/vllm");
  EXPECT_FALSE((*engines)[0].salts_cache);
  EXPECT_TRUE((*engines)[1].salts_cache);
}

TEST(Engines, one_of_another_name_is_what_it_says) {
  const auto engines = read(
      "mine:\n  program: /opt/mine\n  command: [serve, --port, \"{port}\", [--len, \"{context}\"], "
      "7]\n"
      "  env: {WIDTH: \"{batch_size}\", N: 3}\n  body_model: it\n  health: /up\n  base: \"\"\n"
      "  model: name\n  seed: never\n  prefixes: salted\n  lacks: [n, tools]\n");
  ASSERT_TRUE(engines) << engines.error().message;
  const api::EngineTemplate& mine = engines->front();
  EXPECT_EQ(mine.command,
            (std::vector<std::vector<std::string>>{
                {"/opt/mine"}, {"--port"}, {"{port}"}, {"--len", "{context}"}, {"7"}}));
  EXPECT_EQ(mine.env.at("N"), "3");
  EXPECT_EQ(mine.base_path, "");
  EXPECT_TRUE(mine.model_by_name);
  EXPECT_TRUE(mine.drops_seed);
  EXPECT_TRUE(mine.salts_cache);
  EXPECT_EQ(mine.lacks, (std::vector<std::string>{"n", "tools"}));
}

TEST(Engines, what_is_wrong_is_named_with_its_line) {
  EXPECT_NE(error_of("mine:\n  cwd: /x\n").find("engines.mine (line 2) has no command"),
            std::string::npos)
      << error_of("mine:\n  cwd: /x\n");
  EXPECT_NE(error_of("mlx:\n  comand: [x]\n").find("did you mean \"command\""), std::string::npos);
  EXPECT_NE(error_of("mine:\n  command: [bin/serve]\n").find("absolute path"), std::string::npos);
  EXPECT_NE(error_of("mlx:\n  program: ~/x\n").find("engines.mlx.program"), std::string::npos);
  EXPECT_NE(error_of("mlx:\n  lacks: [tool]\n").find("did you mean \"tools\""), std::string::npos);
  EXPECT_NE(error_of("mlx:\n  seed: always\n").find("client, never"), std::string::npos);
  EXPECT_NE(error_of("mlx:\n  prefixes: mine\n").find("shared, salted"), std::string::npos);
  EXPECT_NE(error_of("mlx:\n  cwd: there\n").find("begins with /"), std::string::npos);
  EXPECT_NE(error_of("Mine: {command: [x]}\n").find("a-z"), std::string::npos);
  EXPECT_NE(error_of("[mlx]").find("takes a map"), std::string::npos);
}

TEST(Engines, what_would_begin_another_line_somewhere_is_refused_where_it_stands) {
  const std::pair<const char*, const char*> wrong[] = {
      {"health: \"/up\\r\\nHost: x\"", "engines.mlx.health (line 3)"},
      {"health: \"/up\\u007f\"", "engines.mlx.health (line 3)"},
      {"health: /up now", "engines.mlx.health (line 3)"},
      {"health: \"/\\u00fcp\"", "engines.mlx.health (line 3)"},
      {"base: \"/v1\\n\"", "engines.mlx.base (line 3)"},
      {"base: 7", "engines.mlx.base (line 3)"},
      {"cwd: \"/opt\\n\"", "engines.mlx.cwd (line 3)"},
      {"body_model: \"a\\tb\"", "engines.mlx.body_model (line 3)"},
      {"program: \"mlx\\r\"", "engines.mlx.program (line 3)"},
      {"command: [\"mlx\\n\"]", "engines.mlx.command (line 3)"}};
  for (const auto& [text, where] : wrong) {
    const std::string error = error_of(std::string("mlx:\n  model: path\n  ") + text + "\n");
    EXPECT_NE(error.find(where), std::string::npos) << text << ": " << error;
    EXPECT_EQ(error.find_first_of("\r\n"), std::string::npos) << error;
  }
  const auto script = read("mine:\n  command: [sh, -c, \"one\\ntwo\"]\n  env: {A: \"b\\nc\"}\n");
  ASSERT_TRUE(script) << script.error().message;
  EXPECT_EQ(script->front().command.back().front(), "one\ntwo");
  EXPECT_TRUE(read("mlx:\n  health: /up?deep=1\n  base: \"\"\n"));
}

}  // namespace
}  // namespace flotilla::config
