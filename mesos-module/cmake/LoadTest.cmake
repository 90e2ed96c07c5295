# Tests that this Mesos can load the module. The module is not linked with libraries, because the
# master has them all. The test fails if Mesos was linked with only a part of its gRPC or protobuf.
if(BUILD_TESTING AND MESOS_LIBRARY_mesos)
  add_executable(module_load tests/adapter/module_load.cpp)
  target_compile_options(module_load PRIVATE ${WARNINGS})
  target_link_libraries(module_load PRIVATE mesos ${CMAKE_DL_LIBS})
  add_test(NAME module_load
    COMMAND module_load ${MESOS_LIBRARY_mesos} $<TARGET_FILE:mesos_allocator>
      org_mesosallocator_SidecarAllocator ${MESOS_VERSION})
endif()
