#pragma once

#include <functional>
#include <string>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/task.h"

namespace flotilla::nodes {

// Tells each line of a child's pipe until its end; a long one is cut.
Awaitable<void> read_lines(boost::asio::posix::stream_descriptor& from,
                           std::function<void(std::string line)> told);

}  // namespace flotilla::nodes
