# Generates the messages and the session's stub: targets `allocator_messages`, which needs protobuf
# only, and `allocator_protocol`. Or takes them from another build tree, because generated code is
# several times as large as the module's own and need not be rebuilt.
if(PROTOCOL_TREE)
  foreach(name messages protocol)
    add_library(allocator_${name} STATIC IMPORTED)
    set_target_properties(allocator_${name} PROPERTIES
      IMPORTED_LOCATION ${PROTOCOL_TREE}/liballocator_${name}.a)
  endforeach()
  target_include_directories(allocator_messages SYSTEM INTERFACE ${PROTOCOL_TREE}/proto)
  target_link_libraries(allocator_messages INTERFACE protobuf)
  target_link_libraries(allocator_protocol INTERFACE allocator_messages grpc)
  return()
endif()

set(PROTO_ROOT ${CMAKE_CURRENT_SOURCE_DIR}/../proto)
set(PROTO_OUT ${CMAKE_CURRENT_BINARY_DIR}/proto)
set(PROTO_NAMES types session transcript)
file(MAKE_DIRECTORY ${PROTO_OUT})

set(PROTO_FILES)
foreach(name ${PROTO_NAMES})
  list(APPEND PROTO_FILES ${PROTO_ROOT}/allocator/v1/${name}.proto)
endforeach()

set(PROTO_SOURCES)
set(STUB_SOURCES)
foreach(name ${PROTO_NAMES})
  set(out ${PROTO_OUT}/allocator/v1/${name})
  set(outputs ${out}.pb.cc ${out}.pb.h)
  set(generate --cpp_out=${PROTO_OUT})
  if(name STREQUAL "session")
    list(APPEND STUB_SOURCES ${out}.grpc.pb.cc ${out}.grpc.pb.h)
    list(APPEND outputs ${STUB_SOURCES})
    list(APPEND generate --grpc_out=${PROTO_OUT} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN})
  endif()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${PROTOC} --proto_path=${PROTO_ROOT} ${generate} ${PROTO_ROOT}/allocator/v1/${name}.proto
    DEPENDS ${PROTO_FILES}
    VERBATIM)
  list(APPEND PROTO_SOURCES ${out}.pb.cc ${out}.pb.h)
endforeach()

add_library(allocator_messages STATIC ${PROTO_SOURCES})
target_include_directories(allocator_messages SYSTEM PUBLIC ${PROTO_OUT})
target_link_libraries(allocator_messages PUBLIC protobuf)

add_library(allocator_protocol STATIC ${STUB_SOURCES})
target_link_libraries(allocator_protocol PUBLIC allocator_messages grpc)
