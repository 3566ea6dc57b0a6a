# add_openapi(TARGET): adds src/api/openapi.json to TARGET as a generated source that defines what
# api/openapi.h declares.
function(add_openapi target)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(source ${CMAKE_SOURCE_DIR}/src/api/openapi.json)
  set(output ${CMAKE_BINARY_DIR}/openapi_json.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_openapi.py
      ${source} ${PROJECT_VERSION} ${output}
    DEPENDS ${source} ${CMAKE_SOURCE_DIR}/tools/embed_openapi.py
      ${CMAKE_SOURCE_DIR}/tools/embed_dashboard.py
    COMMENT "Embedding the API's description" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
