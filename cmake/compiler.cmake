# Warnings are errors with the compilers that CI runs; another compiler's new warning breaks no build.
add_library(flotilla_options INTERFACE)
target_compile_options(flotilla_options INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^19\\."))
  target_compile_options(flotilla_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the frame allocator of Asio's awaitable for a mismatch when it inlines one half of it.
  target_compile_options(flotilla_options INTERFACE -Wno-mismatched-new-delete)
  target_compile_options(flotilla_options INTERFACE -fpch-preprocess)  # ccache asks for it
endif()
separate_arguments(flotilla_optimize UNIX_COMMAND "${FLOTILLA_OPTIMIZE}")
target_compile_options(flotilla_options INTERFACE ${flotilla_optimize} -fno-omit-frame-pointer)
if(NOT FLOTILLA_SANITIZE)
  # Targets with this property are tests; what they test keeps its own level.
  target_compile_options(flotilla_options INTERFACE $<$<BOOL:$<TARGET_PROPERTY:FLOTILLA_IS_TEST>>:-O1>)
endif()
# A read or a write is a handful of coroutines, one within the other: Asio keeps the frames of two for the next.
target_compile_definitions(flotilla_options INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=8 SPDLOG_FMT_EXTERNAL)
if(NOT FLOTILLA_PORTABLE_ONLY)
  target_compile_definitions(flotilla_options INTERFACE SPDLOG_COMPILED_LIB)
endif()
if(FLOTILLA_SANITIZE)
  target_compile_options(flotilla_options INTERFACE -fsanitize=${FLOTILLA_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(flotilla_options INTERFACE -fsanitize=${FLOTILLA_SANITIZE})
endif()
if(FLOTILLA_COVERAGE)
  target_compile_options(flotilla_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(flotilla_options INTERFACE --coverage)
endif()
if(FLOTILLA_FUZZ)
  target_compile_options(flotilla_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(flotilla_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
