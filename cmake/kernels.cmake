# How the sources of src/kernels are compiled: each instruction set's files for that set, chosen at run
# time; the same optimisation in every preset (but see the end). -ffp-contract=off: what is fused is written as fma, so
# that all sets and compilers compute the same bits.
file(GLOB kernel_sources ${CMAKE_SOURCE_DIR}/src/kernels/*.cpp)
list(FILTER kernel_sources EXCLUDE REGEX "_test\\.cpp$")
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off")
function(flotilla_kernel_set suffix)
  file(GLOB sources ${CMAKE_SOURCE_DIR}/src/kernels/*_${suffix}.cpp)
  set(options -O3 -ffp-contract=off ${ARGN})
  if(FLOTILLA_SANITIZE MATCHES "undefined")
    # Unrolled loops of intrinsics with a check at each operand take the compiler minutes.
    list(APPEND options -fno-sanitize=undefined)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 takes the undefined operands in its own intrinsics for uses of unset variables.
    list(APPEND options -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
  if(FLOTILLA_COVERAGE)
    # A count at each turn of their loops would be most of what the tests compute.
    list(APPEND options -fno-profile-arcs -fno-test-coverage)
  endif()
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()
flotilla_kernel_set(avx2 -mavx2 -mfma -mf16c -mbmi)
flotilla_kernel_set(avxvnni -mavx2 -mfma -mf16c -mbmi -mavxvnni)
flotilla_kernel_set(avx512 -mavx2 -mfma -mf16c -mbmi -mavx512f -mavx512bw -mavx512dq -mavx512vl
  -mavx512vnni)
flotilla_kernel_set(amx -mavx2 -mfma -mf16c -mbmi -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
  -mamx-tile -mamx-int8)
set(neon)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Loads that g++ 12 moves up before it hands out registers leave too few of these: sums of 16 columns went through
  # memory, and of Q6_K's 747 instructions a block 290 were that.
  set(neon -fno-schedule-insns)
endif()
flotilla_kernel_set(neon ${neon}) # every 64-bit Arm processor has it
flotilla_kernel_set(neondot ${neon} -march=armv8.2-a+dotprod)
flotilla_kernel_set(neoni8mm ${neon} -march=armv8.2-a+dotprod+i8mm)
if(FLOTILLA_SANITIZE)
  # A check at each access takes the compiler minutes here, too. Products keep their level: they are most of what the
  # sanitizers' tests compute.
  file(GLOB sources ${CMAKE_SOURCE_DIR}/src/kernels/attention*.cpp ${CMAKE_SOURCE_DIR}/src/kernels/*_amx.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -O1)
endif()
