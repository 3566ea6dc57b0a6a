#include "api/transfers.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(SyncSpec, IsReadAsItIsWritten) {
  const SyncSpec spec{.cluster = "lab", .model = "m.gguf", .nodes = {"b", "c"}, .from = "a"};
  const auto read = parse_sync(to_json(spec));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cluster, "lab");
  EXPECT_EQ(read->model, "m.gguf");
  EXPECT_EQ(read->nodes, spec.nodes);
  EXPECT_EQ(read->from, "a");
}

TEST(SyncSpec, WhatIsNotSaidIsChosenByTheServer) {
  const auto read = parse_sync(R"({"cluster":"lab","model":"m.gguf"})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->nodes.empty());
  EXPECT_EQ(read->from, "");
  EXPECT_EQ(to_json(*read), R"({"cluster":"lab","model":"m.gguf"})");
}

TEST(SyncSpec, AWrongFieldIsNamed) {
  for (const auto& [body, field] :
       {std::pair(R"({"cluster":"lab","model":"m","from":1})", "from"),
        std::pair(R"({"cluster":"lab","model":"m","form":"a"})", "form"),
        std::pair(R"({"cluster":"lab","model":""})", "model")}) {
    const auto refused = parse_sync(body);
    ASSERT_FALSE(refused) << body;
    EXPECT_NE(refused.error().message.find(field), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace flotilla::api
