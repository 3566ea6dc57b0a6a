#pragma once

namespace flotilla::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* what);
}

// A bug of ours: on in release builds, prints where, aborts. The watchdog restarts the process.
#define CHECK(condition)        \
  (static_cast<bool>(condition) \
       ? void(0)                \
       : ::flotilla::detail::check_failed(__FILE__, __LINE__, #condition))
