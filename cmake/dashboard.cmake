# add_dashboard(TARGET): builds dashboard/ with Vite and adds it, compressed, to TARGET as a
# generated source that defines what gateway/dashboard_assets.h declares. Everything but
# dashboard/node_modules lies in the build folder.
function(add_dashboard target)
  set(source ${CMAKE_SOURCE_DIR}/dashboard)
  set(output ${CMAKE_BINARY_DIR}/dashboard)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  find_program(FLOTILLA_NODE NAMES node nodejs)
  find_program(FLOTILLA_NPM npm)
  if(NOT FLOTILLA_NODE OR NOT FLOTILLA_NPM)
    message(FATAL_ERROR "The dashboard is built with Node 18 or later and npm; 'node' or 'npm' is "
      "not on PATH. Install them (Debian: apt-get install nodejs npm; macOS: brew install node) "
      "and configure again.")
  endif()

  file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${source}/src/* ${source}/public/*)
  set(stamp ${output}/node_modules.stamp)
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DNPM=${FLOTILLA_NPM} -DNODE=${FLOTILLA_NODE} -DSOURCE=${source}
      -DLOCK=${CMAKE_SOURCE_DIR}/.cache/dashboard.lock -DSTAMP=${stamp}
      -P ${CMAKE_SOURCE_DIR}/cmake/npm_ci.cmake
    DEPENDS ${source}/package.json ${source}/package-lock.json
      ${CMAKE_SOURCE_DIR}/cmake/npm_ci.cmake
    COMMENT "Installing the dashboard's build tools" VERBATIM)

  add_custom_command(OUTPUT ${output}/dashboard_assets.cpp
    COMMAND ${FLOTILLA_NPM} run --silent build --
      --outDir ${output}/dist --emptyOutDir --logLevel warn
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_dashboard.py
      ${output}/dist ${output}/dashboard_assets.cpp
    DEPENDS ${stamp} ${parts} ${source}/index.html ${source}/vite.config.ts ${source}/tsconfig.json
      ${CMAKE_SOURCE_DIR}/tools/embed_dashboard.py
    WORKING_DIRECTORY ${source} COMMENT "Building the dashboard" VERBATIM)
  target_sources(${target} PRIVATE ${output}/dashboard_assets.cpp)

  if(FLOTILLA_TESTS)
    add_test(NAME unit.dashboard COMMAND ${FLOTILLA_NPM} test --silent WORKING_DIRECTORY ${source})
    set_tests_properties(unit.dashboard PROPERTIES LABELS unit)
  endif()
endfunction()
