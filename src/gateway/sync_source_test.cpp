#include "gateway/sync_source.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

Holder holder(const std::string& node, std::int64_t bytes, const std::string& hash) {
  Holder out{.bytes = bytes, .hash = hash};
  out.node.id = node;
  out.node.transport = "ssh";
  out.node.host = node;
  return out;
}

std::string chosen(const std::vector<Holder>& holders, const std::string& from = {}) {
  api::SyncSpec spec;
  spec.model = "m.gguf";
  spec.from = from;
  const auto source = choose_source(holders, spec);
  return source ? source->node.id : source.error().message;
}

TEST(SyncSource, IsANodeWhoseContentMostOfThemHave) {
  EXPECT_EQ(chosen({holder("a", 5, "x"), holder("b", 5, "y"), holder("c", 5, "y")}), "b");
  EXPECT_EQ(chosen({holder("a", 9, "x"), holder("b", 5, "y"), holder("c", 5, "y")}), "b");
  EXPECT_EQ(chosen({holder("a", 5, "x")}), "a");
}

TEST(SyncSource, FilesOfOneSizeAreOneAsFarAsNothingElseIsKnown) {
  EXPECT_EQ(chosen({holder("a", 5, ""), holder("b", 5, "")}), "a");
  EXPECT_EQ(chosen({holder("a", 5, ""), holder("b", 5, "y")}), "a");
}

TEST(SyncSource, TwoContentsThatAsManyHaveAreRefusedUnlessANodeIsNamed) {
  const std::vector<Holder> two = {holder("a", 5, "xxxx"), holder("b", 5, "yyyy")};
  const std::string words = chosen(two);
  for (const char* part : {"nodes a and b have different files", "SHA-256 xxxx", "--from b"})
    EXPECT_NE(words.find(part), std::string::npos) << words;
  EXPECT_EQ(chosen(two, "b"), "b");
  EXPECT_EQ(chosen(two, "c"), "node c has no \"m.gguf\"");
  EXPECT_NE(chosen({holder("a", 5, ""), holder("b", 6, "")}).find("5 bytes and 6 bytes"),
            std::string::npos);
}

TEST(SyncSource, WhoIsToGetItIsNoWitness) {
  std::vector<Holder> two = {holder("a", 5, "x"), holder("b", 5, "y")};
  two[0].wanted = true;
  EXPECT_EQ(chosen(two), "b");
  two[1].wanted = true;
  EXPECT_NE(chosen(two).find("different files"), std::string::npos) << "nobody else has it";
}

TEST(SyncSource, NodesThatShareAFolderCountOnce) {
  std::vector<Holder> three = {holder("a", 5, "x"), holder("b", 5, "y"), holder("c", 5, "y")};
  three[2].node.host = "b";
  EXPECT_NE(chosen(three).find("different files"), std::string::npos);
}

TEST(SyncSource, OfEqualsItIsThisMachine) {
  std::vector<Holder> two = {holder("a", 5, "x"), holder("b", 5, "x")};
  two[1].node.transport = "local";
  EXPECT_EQ(chosen(two), "b");
}

TEST(SyncSource, OneWhoseHashIsNotKnownDoesNotDecideBetweenTwoThatAre) {
  const std::vector<Holder> three = {holder("a", 5, ""), holder("b", 5, "x"), holder("c", 5, "y")};
  EXPECT_NE(chosen(three).find("nodes b and c"), std::string::npos) << chosen(three);
}

TEST(SyncSource, HashesAreAskedForWhereOnlyTheyTellFilesApart) {
  std::vector<Holder> two = {holder("a", 5, ""), holder("b", 5, "")};
  EXPECT_TRUE(needs_hashes(two));
  two[1].wanted = true;
  EXPECT_FALSE(needs_hashes(two)) << "one file";
  two[1] = holder("b", 6, "");
  EXPECT_FALSE(needs_hashes(two)) << "their sizes do";
  two[1] = holder("b", 5, "");
  two[1].node.host = "a";
  EXPECT_FALSE(needs_hashes(two)) << "one folder";
}

TEST(SyncSource, AnotherFileOfThatNameIsToldWhereNobodyLacksIt) {
  const Holder source = holder("a", 5, "x");
  EXPECT_TRUE(check_others({source, holder("b", 5, "x")}, source));
  const auto refused = check_others({source, holder("b", 5, "y")}, source);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--node b"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace flotilla::gateway
