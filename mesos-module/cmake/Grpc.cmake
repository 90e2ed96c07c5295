# Finds protobuf, gRPC and their code generators: targets `protobuf`, `grpc`, and the programs PROTOC
# and GRPC_CPP_PLUGIN.
#
# Debian 12 has both as pkg-config packages. One protobuf and one gRPC may be in a process, so a
# module for a Mesos master takes those of that Mesos instead.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

pkg_check_modules(PROTOBUF REQUIRED IMPORTED_TARGET protobuf)
pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)

find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

add_library(protobuf INTERFACE)
target_link_libraries(protobuf INTERFACE PkgConfig::PROTOBUF Threads::Threads)

add_library(grpc INTERFACE)
target_link_libraries(grpc INTERFACE PkgConfig::GRPCPP protobuf)
