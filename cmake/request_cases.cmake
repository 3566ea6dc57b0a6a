# add_request_cases(TARGET): adds the cases of tests/cases to TARGET as a generated source that defines
# what api/request_case.h declares.
function(add_request_cases target)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cases/*.json)
  set(output ${CMAKE_BINARY_DIR}/request_cases_json.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_cases.py ${output} ${sources}
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/tools/embed_cases.py
      ${CMAKE_SOURCE_DIR}/tools/embed_dashboard.py
    COMMENT "Embedding the request cases" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
