#include "api/engine_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "api/model_config.h"

namespace flotilla::api {
namespace {

EngineValues values() {
  return {.alias = "pool", .model = "/m/{port}", .batch_size = 8, .prefill_batch = 4};
}

std::string command_of(const EngineSpec& spec) {
  return fmt::format("{}", fmt::join(spec.command, " "));
}

TEST(EngineTemplate, words_whose_value_is_not_set_are_left_out_with_those_they_belong_to) {
  EngineTemplate engine;
  engine.command = {{"serve", "{model}"}, {"--len", "{context}"}, {"-np={batch_size}"}};
  engine.env = {{"AT", "127.0.0.1:{port}"}, {"LEN", "{context}"}};
  EngineSpec spec = fill_template(engine, values());
  EXPECT_EQ(command_of(spec), "serve {model} -np=8");
  EXPECT_EQ(spec.env, (std::map<std::string, std::string>{{"AT", "127.0.0.1:{port}"}}));
  EngineValues more = values();
  more.context = 4096;
  EXPECT_EQ(command_of(fill_template(engine, more)), "serve {model} --len 4096 -np=8");
}

TEST(EngineTemplate, what_a_value_says_is_not_read_again) {
  EXPECT_EQ(fill_place("--model={model}", "/m/{port}", 7), "--model=/m/{port}");
  EXPECT_EQ(fill_place("{port}{unknown}{", "m", 7), "7{unknown}{");
  EXPECT_EQ(fill_text("{model}/{alias}", values()), "/m/{port}/pool");
}

TEST(EngineTemplate, those_shipped_listen_on_this_machine_alone) {
  for (const EngineTemplate& engine : shipped_engines()) {
    const EngineSpec spec = fill_template(engine, values());
    std::string all = command_of(spec);
    for (const auto& [name, text] : spec.env) all += " " + text;
    EXPECT_NE(all.find("127.0.0.1"), std::string::npos) << engine.name;
    EXPECT_NE(all.find("{port}"), std::string::npos) << engine.name;
  }
  const EngineTemplate* mlx = find_engine(shipped_engines(), "mlx");
  ASSERT_NE(mlx, nullptr);
  EXPECT_EQ(mlx->body_model, "default_model");
  EXPECT_EQ(command_of(fill_template(*mlx, values())),
            "mlx_lm.server --model {model} --host 127.0.0.1 --port {port} --decode-concurrency 8 "
            "--prompt-concurrency 4 --allowed-origins=");
}

TEST(EngineTemplate, those_of_vllm_llama_server_and_ollama_say_what_a_load_says) {
  EngineValues all = values();
  all.context = 4096;
  all.window = 8192;
  all.threads = 3;
  const auto filled = [&all](std::string_view name) {
    return fill_template(*find_engine(shipped_engines(), name), all);
  };
  EXPECT_EQ(command_of(filled("vllm")),
            "vllm serve {model} --host 127.0.0.1 --port {port} --served-model-name pool "
            "--max-num-seqs 8 --max-model-len 4096 --allowed-origins [] "
            "--enable-prompt-tokens-details");
  EXPECT_EQ(command_of(filled("llama-server")),
            "llama-server -m {model} --host 127.0.0.1 --port {port} --alias pool -np 8 "
            "--kv-unified -c 8192 -t 3 --cors-origins localhost --no-webui");
  const EngineSpec ollama = filled("ollama");
  EXPECT_EQ(command_of(ollama), "ollama serve");
  EXPECT_EQ(ollama.env, (std::map<std::string, std::string>{{"OLLAMA_CONTEXT_LENGTH", "4096"},
                                                            {"OLLAMA_HOST", "127.0.0.1:{port}"},
                                                            {"OLLAMA_KEEP_ALIVE", "-1"},
                                                            {"OLLAMA_NUM_PARALLEL", "8"}}));
  EXPECT_TRUE(ollama.model_by_name);
}

TEST(EngineTemplate, a_folder_goes_to_the_machines_own_kind) {
  EXPECT_EQ(engine_for_folders("macos-arm64"), "mlx");
  EXPECT_EQ(engine_for_folders("linux-x86_64"), "vllm");
}

TEST(ModelConfig, tells_the_cache_and_a_module_of_its_own) {
  const auto plain = parse_model_config(
      R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,)"
      R"("hidden_size":64,"max_position_embeddings":512,"quantization":{"bits":6,"group_size":64}})");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->kv_bytes_per_token, 2 * 2 * 2 * 2 * 16);
  EXPECT_EQ(plain->context, 512);
  EXPECT_EQ(plain->quantization, "6bit");
  EXPECT_EQ(module_warning(*plain), "");
  const auto own = parse_model_config(R"({"model_type":"x","model_file":"model.py"})");
  EXPECT_NE(module_warning(*own).find("model.py"), std::string::npos);
  EXPECT_FALSE(parse_model_config("[]"));
}

}  // namespace
}  // namespace flotilla::api
