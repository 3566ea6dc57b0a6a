#include "gateway/name_watch.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

api::NodeSpec http_node(std::string id, std::string url) {
  api::NodeSpec node;
  node.id = node.label = std::move(id);
  node.transport = "http";
  node.url = std::move(url);
  return node;
}

TEST(NameInUrl, is_none_of_an_address_of_this_machine_and_of_a_node_with_an_agent) {
  EXPECT_EQ(name_in_url(http_node("a", "http://vllm.prod.svc:8000/v1")), "vllm.prod.svc");
  for (const char* none : {"http://10.0.0.5:8000", "http://[fd00::1]:80/v1", "http://localhost:80",
                           "http://a.localhost", "no url"}) {
    EXPECT_EQ(name_in_url(http_node("a", none)), "") << none;
  }
  api::NodeSpec local;
  EXPECT_EQ(name_in_url(local), "");
}

TEST(ExpandNodes, makes_one_of_each_address_and_leaves_the_others) {
  const std::vector<api::NodeSpec> nodes = {http_node("gpu", "http://pool.svc:8000/v1"),
                                            http_node("alone", "http://one.svc/v1"),
                                            http_node("gpu-10-0-0-9", "http://10.0.0.9/v1")};
  const auto out = expand_nodes(nodes, [](const std::string& name) {
    return name == "pool.svc" ? std::vector<std::string>{"10.0.0.5", "10.0.0.9", "fd00::2"}
                              : std::vector<std::string>();
  });
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].id, "gpu-10-0-0-5");
  EXPECT_EQ(out[0].address, "10.0.0.5");
  EXPECT_EQ(out[0].url, "http://pool.svc:8000/v1");
  EXPECT_EQ(out[1].id, "gpu-fd00--2");
  EXPECT_EQ(out[2], nodes[1]);
  EXPECT_EQ(out[3], nodes[2]);  // whoever has that name keeps it
}

}  // namespace
}  // namespace flotilla::gateway
