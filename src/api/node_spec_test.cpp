#include "api/node_spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(Node, AMachineIsReadWithAllItsFields) {
  const auto node = parse_node(
      R"({"id":"mini","transport":"ssh","host":"mini.lan","user":"ann","port":2222,)"
      R"("flotilla_path":"/opt/flotilla/bin/flotilla","models_dir":"/my models","devices":[0,3]})");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->host, "mini.lan");
  EXPECT_EQ(node->user, "ann");
  EXPECT_EQ(node->port, 2222);
  EXPECT_EQ(node->flotilla_path, "/opt/flotilla/bin/flotilla");
  EXPECT_EQ(node->devices, (std::vector<int>{0, 3}));
  EXPECT_TRUE(node->has_agent());
  EXPECT_FALSE(node->is_local());
}

TEST(Node, NothingThatSshOrAShellReadsOtherwiseGetsIn) {
  for (const char* host : {"-oProxyCommand=touch /tmp/x", "a b", "a\\\"b", "a'b", "a\\nb", "u@h",
                           "a;b", "$(x)", "%h", ""}) {
    const auto body = std::string(R"({"id":"n","transport":"ssh","host":")") + host + "\"}";
    const auto node = parse_node(body);
    ASSERT_FALSE(node) << body;
    EXPECT_EQ(node.error().param, "host") << node.error().message;
  }
  for (const char* user : {"-l", "a b", "a@b", "a\\nb", "`x`"}) {
    const auto body =
        std::string(R"({"id":"n","transport":"ssh","host":"h","user":")") + user + "\"}";
    EXPECT_FALSE(parse_node(body)) << body;
  }
  for (const char* path : {"flotilla", "/a b", "/a\\nb", "/a;b", "~/flotilla", "-x", "/a/"}) {
    const auto body =
        std::string(R"({"id":"n","transport":"ssh","host":"h","flotilla_path":")") + path + "\"}";
    EXPECT_FALSE(parse_node(body)) << body;
  }
  for (const char* rest : {R"("port":0)", R"("port":65536)", R"("port":"22")", R"("devices":[-1])",
                           R"("devices":["a"])", R"("url":"http://x")", R"("api_key":"k")"}) {
    const auto body = std::string(R"({"id":"n","transport":"ssh","host":"h",)") + rest + "}";
    EXPECT_FALSE(parse_node(body)) << body;
  }
  EXPECT_FALSE(parse_node(R"({"id":"n","host":"h"})"));  // not ssh
  EXPECT_FALSE(parse_node(R"({"id":"n","transport":"http","url":"http://x","user":"u"})"));
}

TEST(Node, NoErrorNamesASecret) {
  for (const auto& [field, rest] :
       {std::pair{"api_key", R"("url":"http://h","api_key":73317331)"},
        std::pair{"api_key", R"("url":"http://h","api_key":["73317331"])"},
        std::pair{"url", R"("url":"https://u:73317331@h/v1")"}}) {
    const auto node = parse_node(std::string(R"({"id":"n","transport":"http",)") + rest + "}");
    ASSERT_FALSE(node) << rest;
    EXPECT_EQ(node.error().param, field);
    EXPECT_EQ(node.error().message.find("73317331"), std::string::npos) << node.error().message;
  }
  EXPECT_TRUE(parse_node(R"({"id":"n","transport":"http","url":"http://h/v1?to=a@b"})"));
}

TEST(Node, ItsEnvironmentLoadsNoLibrary) {
  EXPECT_TRUE(parse_node(R"({"id":"n","env":{"GGML_CUDA_NO_PINNED":"1"}})"));
  for (const char* name :
       {"GGML_BACKEND_PATH", "OMP_TOOL_LIBRARIES", "OMP_A=B", "LD_PRELOAD", "PATH"}) {
    const auto node =
        parse_node(std::string(R"({"id":"n","env":{")") + name + R"(":"/tmp/x.so"}})");
    ASSERT_FALSE(node) << name;
    EXPECT_EQ(node.error().param, std::string("env.") + name);
  }
}

TEST(Node, ItsEnvironmentHasBounds) {
  const auto with = [](std::size_t variables, std::size_t name_size, std::size_t value_size) {
    std::string env;
    for (std::size_t i = 0; i < variables; ++i)
      env += fmt::format(R"({}"GGML_{:A>{}}":"{:x>{}}")", i == 0 ? "" : ",", i, name_size - 5, "",
                         value_size);
    return parse_node(fmt::format(R"({{"id":"n","env":{{{}}}}})", env));
  };
  EXPECT_TRUE(with(64, 100, 4000)) << "as a fleet file takes it back";
  for (const auto& node : {with(65, 100, 0), with(1, 101, 0), with(1, 1100, 0), with(1, 9, 4001)}) {
    ASSERT_FALSE(node);
    EXPECT_EQ(node.error().param, "env");
    EXPECT_LT(node.error().message.size(), 200U) << node.error().message;
  }
}

TEST(Node, TheShorthandOfACommandLine) {
  const auto one = parse_node_shorthand("mini=ann@mini.lan:2222");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->front().transport, "ssh");
  EXPECT_EQ(one->front().host, "mini.lan");
  EXPECT_EQ(one->front().user, "ann");
  EXPECT_EQ(one->front().port, 2222);
  EXPECT_EQ(parse_node_shorthand("a=ssh://b")->front().host, "b");
  EXPECT_EQ(parse_node_shorthand("a=fe80::1")->front().host, "fe80::1");
  const auto v6 = parse_node_shorthand("a=[fe80::1]:22");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->front().host, "fe80::1");
  EXPECT_EQ(v6->front().port, 22);
  const auto devices = parse_node_shorthand("big1*4=big1");
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 4U);
  EXPECT_EQ(devices->back().id, "big1-4");
  EXPECT_EQ(devices->back().host, "big1");
  EXPECT_EQ(devices->back().devices, std::vector<int>{3});
  for (const char* bad :
       {"a=", "a=-oProxyCommand=x", "a=u@", "a=@h", "a=h:0", "a=h:x", "a=h:70000", "a=u@-h",
        "a=b c", "a=b\nc", "a*2=http://x", "a=ftp://x", "a=[::1", "a*=h"})
    EXPECT_FALSE(parse_node_shorthand(bad)) << bad;
}

}  // namespace
}  // namespace flotilla::api
