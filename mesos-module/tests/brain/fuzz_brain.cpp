#include "tests/fuzz.hpp"

#include "tests/brain/life.hpp"

// A life of the brain, from bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  return allocator::live<allocator::brain::Life>(data, size);
}
