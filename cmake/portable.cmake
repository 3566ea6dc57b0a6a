# FLOTILLA_PORTABLE_ONLY: the folders that know no outside program (base, model, cluster, batch, kernels) and
# their tests, for a processor that this machine is not. Header-only libraries come from this machine, OpenSSL
# from the packages of the other one, unpacked in FLOTILLA_SYSROOT.
if(DEFINED ENV{FLOTILLA_CACHE})
  set(cache $ENV{FLOTILLA_CACHE})
else()
  set(cache ${CMAKE_SOURCE_DIR}/.cache)
endif()
set(FLOTILLA_SYSROOT "${cache}/packages-arm64" CACHE PATH "unpacked libssl-dev and libssl3")
set(headers ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${headers})
foreach(library boost fmt spdlog)
  file(CREATE_LINK /usr/include/${library} ${headers}/${library} SYMBOLIC)
endforeach()

find_package(Threads REQUIRED)
add_library(portable_headers INTERFACE)
target_include_directories(portable_headers SYSTEM INTERFACE ${headers} ${FLOTILLA_SYSROOT}/usr/include
  ${FLOTILLA_SYSROOT}/usr/include/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
target_compile_definitions(portable_headers INTERFACE FMT_HEADER_ONLY)
set(crypto ${FLOTILLA_SYSROOT}/usr/lib/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
target_link_libraries(portable_headers INTERFACE ${crypto}/libssl.a ${crypto}/libcrypto.a Threads::Threads
  ${CMAKE_DL_LIBS})
add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)

flotilla_folder(base SYSTEM portable_headers)
flotilla_folder(model LINKS base)
include(${CMAKE_SOURCE_DIR}/cmake/kernels.cmake)
flotilla_folder(platform LINKS base)
flotilla_folder(kernels OWN_FLAGS LINKS base platform)
flotilla_folder(batch LINKS base)
flotilla_folder(cluster LINKS base)
