#include "platform/open_files.h"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

TEST(OpenFiles, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const int files = raise_open_files_limit();
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(static_cast<rlim_t>(files), std::min<rlim_t>(before.rlim_max, 65'536));
  EXPECT_EQ(now.rlim_cur, static_cast<rlim_t>(files));
}

}  // namespace
}  // namespace flotilla::platform
