#ifndef __ALLOCATOR_TESTS_PRICE_HPP__
#define __ALLOCATOR_TESTS_PRICE_HPP__

#include <cstdint>

namespace allocator {

// Cost of a thread's work: processor time, and number of allocations (counted
// in programs that link `price.cpp`). The difference of two prices is the cost
// of the work between them.
struct Price
{
  int64_t ns = 0;
  int64_t allocations = 0;

  Price& operator+=(const Price& that)
  {
    ns += that.ns;
    allocations += that.allocations;
    return *this;
  }

  Price operator-(const Price& that) const
  {
    return Price{ns - that.ns, allocations - that.allocations};
  }
};


// The price of the calling thread's work since it began.
Price priceOfThread();

// Processor time of all threads of this process.
int64_t processNs();

} // namespace allocator {

#endif // __ALLOCATOR_TESTS_PRICE_HPP__
