#include "tests/price.hpp"

#include <ctime>

#include <cstdlib>
#include <new>

namespace {

thread_local int64_t allocations = 0;


void* allocate(size_t size)
{
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}


int64_t nsOf(clockid_t clock)
{
  timespec time;
  clock_gettime(clock, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

} // namespace {


// Counts allocations of the whole program, including those of libraries.

void* operator new(size_t size)
{
  return allocate(size);
}


void* operator new[](size_t size)
{
  return allocate(size);
}


void operator delete(void* memory) noexcept
{
  std::free(memory);
}


void operator delete[](void* memory) noexcept
{
  std::free(memory);
}


void operator delete(void* memory, size_t) noexcept
{
  std::free(memory);
}


void operator delete[](void* memory, size_t) noexcept
{
  std::free(memory);
}


namespace allocator {

Price priceOfThread()
{
  return Price{nsOf(CLOCK_THREAD_CPUTIME_ID), allocations};
}


int64_t processNs()
{
  return nsOf(CLOCK_PROCESS_CPUTIME_ID);
}

} // namespace allocator {
