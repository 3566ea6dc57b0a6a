# Which parts each kind of package has. The service's files have fixed places, so Debian's is installed
# with DESTDIR; the tarball brings its libraries along.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL program system)
  set(CPACK_SET_DESTDIR ON)
  set(CPACK_INSTALL_PREFIX /usr)
else()
  set(CPACK_COMPONENTS_ALL program libraries)
  # What is unpacked lies in one folder.
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
