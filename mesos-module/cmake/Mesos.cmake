# Finds a Mesos and its dependencies: targets `protobuf`, `grpc` and `mesos`, the programs PROTOC and
# GRPC_CPP_PLUGIN, and MESOS_VERSION.
#
# MESOS_ROOT is a prefix with include/, lib/ and bin/, made by deploy/mesos/mesos-root.
find_package(Threads REQUIRED)

set(GATHER "gather one with ${PROJECT_SOURCE_DIR}/../deploy/mesos/mesos-root BUILD_TREE")
if(EXISTS ${MESOS_ROOT}/CMakeCache.txt OR EXISTS ${MESOS_ROOT}/config.status)
  message(FATAL_ERROR
    "MESOS_ROOT is '${MESOS_ROOT}', which is a build tree, not a prefix; ${GATHER}")
endif()
set(MESOS_INCLUDE ${MESOS_ROOT}/include)
foreach(file include/mesos/allocator/allocator.hpp include/process/process.hpp
    include/grpcpp/grpcpp.h include/google/protobuf/message.h bin/protoc bin/grpc_cpp_plugin)
  if(NOT EXISTS ${MESOS_ROOT}/${file})
    message(FATAL_ERROR "MESOS_ROOT is '${MESOS_ROOT}', but it has no ${file}; ${GATHER}")
  endif()
endforeach()
set(PROTOC ${MESOS_ROOT}/bin/protoc)
set(GRPC_CPP_PLUGIN ${MESOS_ROOT}/bin/grpc_cpp_plugin)

# MESOS_DEFINITIONS: macros that affect Mesos's headers. MESOS_INCLUDE_BESIDE: include directories of
# system libraries that its build was configured with.
include(${MESOS_ROOT}/share/mesos-root.cmake OPTIONAL)

file(STRINGS ${MESOS_INCLUDE}/mesos/version.hpp line REGEX "define MESOS_VERSION ")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" MESOS_VERSION "${line}")

add_library(protobuf INTERFACE)
target_include_directories(protobuf SYSTEM INTERFACE ${MESOS_INCLUDE})
target_link_libraries(protobuf INTERFACE Threads::Threads)

# Current compilers warn about code inlined from the headers of that protobuf and stout.
target_compile_options(protobuf INTERFACE -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overread)

# A Mesos without TLS has the gRPC variant without TLS.
if("USE_SSL_SOCKET=1" IN_LIST MESOS_DEFINITIONS)
  set(GRPC_HAS_TLS ON)
  set(GRPC_VARIANT "")
else()
  set(GRPC_HAS_TLS OFF)
  set(GRPC_VARIANT _unsecure)
endif()
add_library(grpc INTERFACE)
target_link_libraries(grpc INTERFACE protobuf)

# Headers only: the module is not linked with the libraries, because the master has loaded them.
add_library(mesos INTERFACE)
target_include_directories(mesos SYSTEM INTERFACE ${MESOS_INCLUDE_BESIDE})
target_compile_definitions(mesos INTERFACE __STDC_FORMAT_MACROS HAVE_LIBZ ${MESOS_DEFINITIONS})

# A newer protobuf warns that `FrameworkInfo.role` is deprecated. An allocator must still read it, for
# frameworks that set no `roles`.
target_compile_options(mesos INTERFACE -Wno-deprecated-declarations)

# Mesos is built without NDEBUG, which its headers depend on.
target_compile_options(mesos INTERFACE -UNDEBUG)
target_link_libraries(mesos INTERFACE grpc)

# Libraries for programs, which run without a master. Resolves the prefix's links: a program looks for
# a library by its soname, which only exists beside the library itself.
# Headers of a newer gRPC call Abseil, with which only gRPC's library is linked, so GNU's linker has to
# search the libraries of libraries; other linkers do not know the option.
include(CheckCXXSourceCompiles)
set(LOOK_INTO_LIBRARIES -Wl,--copy-dt-needed-entries)
set(CMAKE_REQUIRED_LINK_OPTIONS ${LOOK_INTO_LIBRARIES})
check_cxx_source_compiles("int main() {}" LINKER_LOOKS_INTO_LIBRARIES)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
set(MESOS_LIBRARIES)
if(LINKER_LOOKS_INTO_LIBRARIES)
  set(MESOS_LIBRARIES ${LOOK_INTO_LIBRARIES})
endif()
foreach(name mesos mesos-protobufs process grpc++${GRPC_VARIANT} grpc${GRPC_VARIANT} gpr protobuf glog)
  find_library(MESOS_LIBRARY_${name} ${name} HINTS ${MESOS_ROOT}/lib NO_DEFAULT_PATH)
  if(MESOS_LIBRARY_${name})
    get_filename_component(library ${MESOS_LIBRARY_${name}} REALPATH)
    list(APPEND MESOS_LIBRARIES ${library})
  endif()
endforeach()
message(STATUS "Mesos ${MESOS_VERSION} of ${MESOS_ROOT}, TLS ${GRPC_HAS_TLS}")
