#include "tests/fuzz.hpp"

#include "tests/brain/life.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
  return allocator::live<allocator::brain::Life>(data, size);
}
