# Finds protobuf, gRPC and their code generators: the targets `protobuf` and `grpc`, and the programs
# PROTOC and GRPC_CPP_PLUGIN.
#
# A process can only have one protobuf and one gRPC, so a module for a Mesos master uses those of its
# Mesos: GRPC_ROOT contains them as bin/, include/ and lib/. Otherwise Debian's are used.
find_package(Threads REQUIRED)

set(GRPC_ROOT "${MESOS_ROOT}" CACHE PATH "Prefix of protobuf and gRPC; empty: the system's")
add_library(protobuf INTERFACE)
add_library(grpc INTERFACE)

if(GRPC_ROOT)
  set(only PATHS ${GRPC_ROOT} NO_DEFAULT_PATH)
  find_program(PROTOC protoc ${only} PATH_SUFFIXES bin REQUIRED)
  find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin ${only} PATH_SUFFIXES bin REQUIRED)
  find_path(GRPC_INCLUDE grpcpp/grpcpp.h ${only} PATH_SUFFIXES include REQUIRED)
  target_include_directories(protobuf SYSTEM INTERFACE ${GRPC_INCLUDE})

  # Mesos builds gRPC without TLS by default.
  foreach(names "protobuf" "grpc++;grpc++_unsecure" "grpc;grpc_unsecure" "gpr")
    list(GET names 0 name)
    find_library(GRPC_LIBRARY_${name} NAMES ${names} ${only} PATH_SUFFIXES lib REQUIRED)
    if(NOT name STREQUAL "protobuf")
      target_link_libraries(grpc INTERFACE ${GRPC_LIBRARY_${name}})
    endif()
  endforeach()

  target_link_libraries(protobuf INTERFACE ${GRPC_LIBRARY_protobuf})
  if(GRPC_LIBRARY_grpc++ MATCHES unsecure)
    set(GRPC_HAS_TLS OFF)
  else()
    set(GRPC_HAS_TLS ON)
  endif()
else()
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(PROTOBUF REQUIRED IMPORTED_TARGET protobuf)
  pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
  find_program(PROTOC protoc REQUIRED)
  find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
  target_link_libraries(protobuf INTERFACE PkgConfig::PROTOBUF)
  target_link_libraries(grpc INTERFACE PkgConfig::GRPCPP)
  set(GRPC_HAS_TLS ON)
endif()

target_link_libraries(protobuf INTERFACE Threads::Threads)
target_link_libraries(grpc INTERFACE protobuf)
message(STATUS "gRPC of ${GRPC_CPP_PLUGIN}, TLS ${GRPC_HAS_TLS}")
