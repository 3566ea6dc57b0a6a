#include "platform/pipe_reader.h"

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

TEST(PipeReader, APipeIsAbandonedOnceItsReadingEndIsClosed) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd read(ends[0]);
  const Fd write(ends[1]);
  EXPECT_FALSE(is_abandoned(write));
  read.reset();
  EXPECT_TRUE(is_abandoned(write));
}

// An sshd may give a program one socket for both; the end of its stdin is not that of its reader.
TEST(PipeReader, ASocketIsAbandonedOnceItsPeerIsGoneAndNotWhenThatOnlyStopsWriting) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Fd peer(ends[0]);
  const Fd ours(ends[1]);
  ASSERT_EQ(::shutdown(peer.get(), SHUT_WR), 0);
  EXPECT_FALSE(is_abandoned(ours));
  peer.reset();
  EXPECT_TRUE(is_abandoned(ours));
}

}  // namespace
}  // namespace flotilla::platform
