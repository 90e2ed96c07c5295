#ifndef __ALLOCATOR_TESTS_FUZZ_HPP__
#define __ALLOCATOR_TESTS_FUZZ_HPP__

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/choices.hpp"

// What a fuzzer calls with bytes of its own, and `play_corpus.cpp` with those
// of files.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace allocator {

// Plays a life until the bytes are used up; dies of its first fault.
template <typename Life>
int live(const uint8_t* data, size_t size)
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

  if (!life.fault.empty()) {
    std::fprintf(stderr, "%s\n", life.fault.c_str());
    std::abort();
  }
  return 0;
}

} // namespace allocator {

#endif // __ALLOCATOR_TESTS_FUZZ_HPP__
