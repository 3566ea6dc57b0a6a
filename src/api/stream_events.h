#pragma once

#include <string_view>
#include <vector>

namespace flotilla::api {

// What the `data:` lines of a whole stream say, in order and without spaces around it; views of
// `body`. Servers of chat answers send one line an event.
std::vector<std::string_view> stream_events(std::string_view body);

}  // namespace flotilla::api
