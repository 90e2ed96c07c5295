#include "tests/fuzz.hpp"

#include "tests/brain/session_life.hpp"

// A life of the brain and of the session, from bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  return allocator::live<allocator::brain::SessionLife>(data, size);
}
