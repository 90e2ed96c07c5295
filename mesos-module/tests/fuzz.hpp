#ifndef __ALLOCATOR_TESTS_FUZZ_HPP__
#define __ALLOCATOR_TESTS_FUZZ_HPP__

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/choices.hpp"

// Entry point for the fuzzer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace allocator {

// Runs a `Life` that draws its choices from the bytes, until they are used up
// or a fault occurs. Returns the fault, or an empty string.
template <typename Life>
std::string faultOf(const uint8_t* data, size_t size)
{
  ByteChoices choices(data, size);
  const uint64_t seed = choices.draw(256);
  Life life(&choices, seed);

  while (life.fault.empty() && !choices.ended()) {
    life.turn();
  }
  if (life.fault.empty()) {
    life.settle();
  }
  return life.fault;
}


// Runs one input of the fuzzer; aborts at a fault.
template <typename Life>
int live(const uint8_t* data, size_t size)
{
  const std::string fault = faultOf<Life>(data, size);
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::abort();
  }
  return 0;
}

} // namespace allocator {

#endif // __ALLOCATOR_TESTS_FUZZ_HPP__
