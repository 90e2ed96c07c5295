# Finds a Mesos and what it brings along: targets `protobuf`, `grpc` and `mesos`, the programs PROTOC
# and GRPC_CPP_PLUGIN, and MESOS_VERSION.
#
# MESOS_ROOT is a prefix with include/, lib/ and bin/. The headers of gRPC, and the two programs,
# belong there, too; a plain installation of Mesos lacks them, its build tree has them.
find_package(Threads REQUIRED)

set(MESOS_INCLUDE ${MESOS_ROOT}/include)
foreach(header mesos/allocator/allocator.hpp process/process.hpp grpcpp/grpcpp.h
    google/protobuf/message.h)
  if(NOT EXISTS ${MESOS_INCLUDE}/${header})
    message(FATAL_ERROR "MESOS_ROOT is '${MESOS_ROOT}', but it has no include/${header}")
  endif()
endforeach()

find_program(PROTOC protoc HINTS ${MESOS_ROOT}/bin NO_DEFAULT_PATH REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin HINTS ${MESOS_ROOT}/bin NO_DEFAULT_PATH REQUIRED)
find_path(APR_INCLUDE apr_pools.h PATH_SUFFIXES apr-1.0 apr-1 REQUIRED)
find_path(SVN_INCLUDE svn_delta.h PATH_SUFFIXES subversion-1 REQUIRED)

file(STRINGS ${MESOS_INCLUDE}/mesos/version.hpp line REGEX "define MESOS_VERSION ")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" MESOS_VERSION "${line}")

add_library(protobuf INTERFACE)
target_include_directories(protobuf SYSTEM INTERFACE ${MESOS_INCLUDE})
target_link_libraries(protobuf INTERFACE Threads::Threads)

# Compilers of today suspect what the headers of that protobuf inline.
target_compile_options(protobuf INTERFACE -Wno-array-bounds -Wno-stringop-overread)

# Mesos is linked against the variant of gRPC that has no TLS.
set(CLIENT_TLS OFF)
set(GRPC_HAS_TLS OFF)
add_library(grpc INTERFACE)
target_link_libraries(grpc INTERFACE protobuf)

# Nothing of this is linked into the module: the master has all of it loaded.
add_library(mesos INTERFACE)
target_include_directories(mesos SYSTEM INTERFACE ${APR_INCLUDE} ${SVN_INCLUDE})
target_compile_definitions(mesos INTERFACE __STDC_FORMAT_MACROS HAVE_LIBZ)

# Mesos is not built with NDEBUG, and its headers look at it.
target_compile_options(mesos INTERFACE -UNDEBUG)
target_link_libraries(mesos INTERFACE grpc)

# For programs, which have no master around them.
set(MESOS_LIBRARIES)
foreach(name mesos mesos-protobufs process grpc++_unsecure grpc_unsecure gpr protobuf glog)
  find_library(MESOS_LIBRARY_${name} ${name} HINTS ${MESOS_ROOT}/lib NO_DEFAULT_PATH)
  if(MESOS_LIBRARY_${name})
    list(APPEND MESOS_LIBRARIES ${MESOS_LIBRARY_${name}})
  endif()
endforeach()
