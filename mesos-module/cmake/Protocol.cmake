# Generates the messages and the stub of the session: target `allocator_protocol`.
set(PROTO_ROOT ${CMAKE_CURRENT_SOURCE_DIR}/../proto)
set(PROTO_COPY ${CMAKE_CURRENT_BINARY_DIR}/proto-copy)
set(PROTO_OUT ${CMAKE_CURRENT_BINARY_DIR}/proto)
set(PROTO_NAMES types session transcript)
file(MAKE_DIRECTORY ${PROTO_COPY}/allocator/v1 ${PROTO_OUT})

# In C++ a field `has_capacity` beside a message `capacity` defines one accessor twice. On the wire a
# field is its number, so its name may differ here.
set(PROTO_RENAME s/has_capacity/capacity_given/)

set(PROTO_COPIES)
foreach(name ${PROTO_NAMES})
  set(proto ${PROTO_ROOT}/allocator/v1/${name}.proto)
  set(copy ${PROTO_COPY}/allocator/v1/${name}.proto)
  add_custom_command(
    OUTPUT ${copy}
    COMMAND sed ${PROTO_RENAME} ${proto} > ${copy}
    DEPENDS ${proto}
    VERBATIM)
  list(APPEND PROTO_COPIES ${copy})
endforeach()

set(PROTO_SOURCES)
foreach(name ${PROTO_NAMES})
  set(out ${PROTO_OUT}/allocator/v1/${name})
  set(outputs ${out}.pb.cc ${out}.pb.h)
  set(generate --cpp_out=${PROTO_OUT})
  if(name STREQUAL "session")
    list(APPEND outputs ${out}.grpc.pb.cc ${out}.grpc.pb.h)
    list(APPEND generate --grpc_out=${PROTO_OUT} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN})
  endif()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${PROTOC} --proto_path=${PROTO_COPY} ${generate} ${PROTO_COPY}/allocator/v1/${name}.proto
    DEPENDS ${PROTO_COPIES}
    VERBATIM)
  list(APPEND PROTO_SOURCES ${outputs})
endforeach()

add_library(allocator_protocol STATIC ${PROTO_SOURCES})
target_include_directories(allocator_protocol SYSTEM PUBLIC ${PROTO_OUT})
target_link_libraries(allocator_protocol PUBLIC grpc)
