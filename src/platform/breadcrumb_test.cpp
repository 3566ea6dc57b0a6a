#include "platform/breadcrumb.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

class BreadcrumbTest : public testing::Test {
 protected:
  std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("crumb-" + std::to_string(::getpid()));
  ~BreadcrumbTest() override { std::filesystem::remove(file_); }
};

TEST_F(BreadcrumbTest, TellsOfAProcessThatWasKilledInAPass) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto crumb = Breadcrumb::create(file_);
    const std::array<std::string_view, 2> requests{"req-1", "req-2"};
    crumb->begin_pass(requests);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const Crumbs crumbs = read_breadcrumb(file_);
  EXPECT_EQ(crumbs.in_pass, (std::vector<std::string>{"req-1", "req-2"}));
  EXPECT_EQ(crumbs.named(), "");
}

TEST_F(BreadcrumbTest, NamesWhoseOwnCodeRan) {
  auto crumb = Breadcrumb::create(file_);
  ASSERT_TRUE(crumb);
  crumb->begin_own("req-7");
  EXPECT_EQ(read_breadcrumb(file_).named(), "req-7");
  crumb->end();
  EXPECT_EQ(read_breadcrumb(file_).named(), "");
  const std::array<std::string_view, 1> alone{"req-8"};
  crumb->begin_pass(alone);
  EXPECT_EQ(read_breadcrumb(file_).named(), "req-8");
}

TEST_F(BreadcrumbTest, NamesNobodyWhenTwoMayHaveDoneIt) {
  auto crumb = Breadcrumb::create(file_);
  ASSERT_TRUE(crumb);
  {
    const Breadcrumb::Preparing one(*crumb, "req-1");
    EXPECT_EQ(read_breadcrumb(file_).named(), "req-1");
    const Breadcrumb::Preparing two(*crumb, "req-2");
    EXPECT_EQ(read_breadcrumb(file_).named(), "");
  }
  const Breadcrumb::Preparing one(*crumb, "req-1");
  crumb->begin_own("req-3");
  EXPECT_EQ(read_breadcrumb(file_).named(), "");
}

TEST_F(BreadcrumbTest, IsEmptyWithoutAFile) {
  EXPECT_EQ(read_breadcrumb(file_).named(), "");
  Breadcrumb none;
  none.begin_own("req-1");
  none.end();
  const Breadcrumb::Preparing nothing(none, "req-1");
}

}  // namespace
}  // namespace flotilla::platform
