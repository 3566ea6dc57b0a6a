# base_dir = source root and no directory hash: a clone in another folder hits the same cache. pch_defines: what
# precompiled headers are made with is the same for all that use them.
find_program(CCACHE ccache)
if(CCACHE)
  foreach(lang C CXX)
    set(CMAKE_${lang}_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=time_macros,pch_defines CCACHE_PCH_EXTSUM=1
      ${CMAKE_SOURCE_DIR}/cmake/with_pch_sum ${CCACHE})
  endforeach()
endif()
