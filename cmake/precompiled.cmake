# The outside headers that most of our units begin with, parsed once for all: `plain`, or `network` with Asio; each also
# for tests, with GoogleTest. Only with g++ and for this processor: the other compilers see each file as it stands, and
# so show that it includes what it uses.
set(flotilla_headers_plain
  <algorithm> <array> <charconv> <chrono> <cstdint> <deque> <expected> <filesystem> <functional> <map> <memory>
  <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h> <boost/json.hpp>)
set(flotilla_headers_network ${flotilla_headers_plain}
  <boost/asio/any_io_executor.hpp> <boost/asio/as_tuple.hpp> <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp>
  <boost/asio/generic/stream_protocol.hpp> <boost/asio/io_context.hpp> <boost/asio/post.hpp>
  <boost/asio/steady_timer.hpp> <boost/asio/this_coro.hpp> <boost/asio/thread_pool.hpp>
  <boost/asio/use_awaitable.hpp>)

# flotilla_precompile(TARGET plain|network [TESTS]): lets TARGET begin with them.
function(flotilla_precompile target kind)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR FLOTILLA_PORTABLE_ONLY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "TESTS" "" "")
  set(parsed flotilla_parsed_${kind})
  if(arg_TESTS)
    string(APPEND parsed _tests)
  endif()
  if(NOT TARGET ${parsed})
    set(empty ${CMAKE_BINARY_DIR}/${parsed}.cpp)
    if(NOT EXISTS ${empty})
      file(WRITE ${empty} "")
    endif()
    add_library(${parsed} OBJECT ${empty})
    target_link_libraries(${parsed} PRIVATE flotilla_options fmt::fmt)
    target_precompile_headers(${parsed} PRIVATE ${flotilla_headers_${kind}})
    if(arg_TESTS)
      set_target_properties(${parsed} PROPERTIES FLOTILLA_IS_TEST ON)
      target_link_libraries(${parsed} PRIVATE GTest::gtest GTest::gmock)
      target_precompile_headers(${parsed} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    endif()
  endif()
  if(arg_TESTS)
    # g++ 12 forgets that what it parsed before is the library's, and warns of std::string's own lines.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  target_compile_options(${target} PRIVATE -fPIC)  # programs too: what was parsed is for one such setting
  target_precompile_headers(${target} REUSE_FROM ${parsed})
endfunction()
