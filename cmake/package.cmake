# What `cpack` makes of a build: a .deb with the service, and a tarball that runs from any folder with the
# libraries that Debian's would come from elsewhere. tools/package builds both.
set(FLOTILLA_V4_PROGRAM "" CACHE FILEPATH "flotilla built for x86-64-v4, which the agent takes for runners there")

install(TARGETS flotilla RUNTIME DESTINATION bin COMPONENT program)
if(FLOTILLA_V4_PROGRAM AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  install(PROGRAMS ${FLOTILLA_V4_PROGRAM} DESTINATION lib/flotilla RENAME flotilla-x86-64-v4 COMPONENT program)
endif()
install(FILES LICENSE DESTINATION share/doc/flotilla RENAME copyright COMPONENT program)
install(FILES README.md DESTINATION share/doc/flotilla COMPONENT program)
install(DIRECTORY docs/ DESTINATION share/doc/flotilla/docs COMPONENT program)
install(DIRECTORY deploy/ DESTINATION share/doc/flotilla/deploy COMPONENT program PATTERN debian EXCLUDE)
# Man pages and completions are the program's own words.
install(CODE "execute_process(COMMAND \"$<TARGET_FILE:flotilla>\" manual --share
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)

# All but what belongs to the kernel and the C library, whose place is the machine's.
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:flotilla>\" RESOLVED_DEPENDENCIES_VAR libraries
    PRE_EXCLUDE_REGEXES \"^ld-linux\" \"^lib(c|m|dl|rt|pthread|resolv)\\\\.so\")
  foreach(library IN LISTS libraries)
    file(INSTALL \"\${library}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/flotilla\" FOLLOW_SYMLINK_CHAIN)
  endforeach()" COMPONENT libraries)

set(debian ${CMAKE_SOURCE_DIR}/deploy/debian)
install(FILES ${debian}/flotilla.service DESTINATION /usr/lib/systemd/system COMPONENT system)
install(FILES ${debian}/sysusers.conf DESTINATION /usr/lib/sysusers.d RENAME flotilla.conf COMPONENT system)
install(FILES ${debian}/tmpfiles.conf DESTINATION /usr/lib/tmpfiles.d RENAME flotilla.conf COMPONENT system)
install(FILES ${debian}/flotilla.yaml ${debian}/ssh_config DESTINATION /etc/flotilla COMPONENT system)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME flotilla)
set(CPACK_PACKAGE_VENDOR Flotilla)
set(CPACK_PACKAGE_CONTACT "Flotilla <flotilla@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "one language model for many users from a few machines")
set(CPACK_PACKAGE_DESCRIPTION "Each machine holds a full copy of the model and answers several conversations in
 the same forward pass; a gateway makes them one OpenAI-compatible endpoint.")
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package_parts.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openssh-client, systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/postinst ${debian}/prerm ${debian}/postrm ${debian}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
