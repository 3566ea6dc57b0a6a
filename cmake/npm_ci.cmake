# Brings dashboard/node_modules to what package-lock.json says, once, however many build folders
# ask at the same time.
execute_process(COMMAND ${NODE} -p "process.versions.node.split('.')[0] >= 18"
  OUTPUT_VARIABLE recent OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT recent STREQUAL "true")
  message(FATAL_ERROR "The dashboard needs Node 18 or later, but ${NODE} is older. "
    "Put a newer one first on PATH and remove FLOTILLA_NODE from CMakeCache.txt.")
endif()
get_filename_component(lock_folder ${LOCK} DIRECTORY)
file(MAKE_DIRECTORY ${lock_folder})
file(LOCK ${LOCK} TIMEOUT 600 RESULT_VARIABLE lock_error)
if(lock_error)
  message(FATAL_ERROR "Another build has been installing the dashboard's tools for 10 minutes "
    "(lock ${LOCK}: ${lock_error}).")
endif()
file(SHA256 ${SOURCE}/package-lock.json wanted)
set(mark ${SOURCE}/node_modules/.installed)
set(installed "")
if(EXISTS ${mark})
  file(READ ${mark} installed)
endif()
if(NOT installed STREQUAL wanted)
  execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline
    WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "'npm ci' in ${SOURCE} failed (exit ${failed}): the first build needs the "
      "npm registry, or a warm npm cache.")
  endif()
  file(WRITE ${mark} ${wanted})
endif()
file(TOUCH ${STAMP})
