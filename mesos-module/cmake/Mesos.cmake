# Finds a Mesos and what it brings along: targets `protobuf`, `grpc` and `mesos`, the programs PROTOC
# and GRPC_CPP_PLUGIN, and MESOS_VERSION.
#
# MESOS_ROOT is a prefix with include/, lib/ and bin/, as deploy/mesos/mesos-root makes it.
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

# MESOS_DEFINITIONS: macros that change what Mesos's headers declare. MESOS_INCLUDE_BESIDE: where it
# was told to look for libraries of the system.
include(${MESOS_ROOT}/share/mesos-root.cmake OPTIONAL)

file(STRINGS ${MESOS_INCLUDE}/mesos/version.hpp line REGEX "define MESOS_VERSION ")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" MESOS_VERSION "${line}")

add_library(protobuf INTERFACE)
target_include_directories(protobuf SYSTEM INTERFACE ${MESOS_INCLUDE})
target_link_libraries(protobuf INTERFACE Threads::Threads)

# Compilers of today suspect what the headers of that protobuf and of stout inline.
target_compile_options(protobuf INTERFACE -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overread)

# A Mesos with TLS has a gRPC with TLS, any other the variant that has none.
if("USE_SSL_SOCKET=1" IN_LIST MESOS_DEFINITIONS)
  set(GRPC_HAS_TLS ON)
  set(GRPC_VARIANT "")
else()
  set(GRPC_HAS_TLS OFF)
  set(GRPC_VARIANT _unsecure)
endif()
add_library(grpc INTERFACE)
target_link_libraries(grpc INTERFACE protobuf)

# Nothing of this is linked into the module: the master has all of it loaded.
add_library(mesos INTERFACE)
target_include_directories(mesos SYSTEM INTERFACE ${MESOS_INCLUDE_BESIDE})
target_compile_definitions(mesos INTERFACE __STDC_FORMAT_MACROS HAVE_LIBZ ${MESOS_DEFINITIONS})

# Mesos is not built with NDEBUG, and its headers look at it.
target_compile_options(mesos INTERFACE -UNDEBUG)
target_link_libraries(mesos INTERFACE grpc)

# For programs, which have no master around them. Not by the prefix's links: a program looks for a library
# under the name that its builder gave it, which is beside the library itself only.
set(MESOS_LIBRARIES)
foreach(name mesos mesos-protobufs process grpc++${GRPC_VARIANT} grpc${GRPC_VARIANT} gpr protobuf glog)
  find_library(MESOS_LIBRARY_${name} ${name} HINTS ${MESOS_ROOT}/lib NO_DEFAULT_PATH)
  if(MESOS_LIBRARY_${name})
    get_filename_component(library ${MESOS_LIBRARY_${name}} REALPATH)
    list(APPEND MESOS_LIBRARIES ${library})
  endif()
endforeach()
message(STATUS "Mesos ${MESOS_VERSION} of ${MESOS_ROOT}, TLS ${GRPC_HAS_TLS}")
