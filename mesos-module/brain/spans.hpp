#ifndef __ALLOCATOR_BRAIN_SPANS_HPP__
#define __ALLOCATOR_BRAIN_SPANS_HPP__

#include <cstdint>
#include <vector>

namespace allocator {
namespace brain {

// Whole numbers from `begin` to `end`, both included.
struct Span
{
  uint64_t begin;
  uint64_t end;

  bool operator==(const Span& that) const
  {
    return begin == that.begin && end == that.end;
  }
};


// A set of whole numbers: ports, or the items of a set as the adapter has
// numbered them. Sorted; no two spans overlap or touch.
using Spans = std::vector<Span>;

// Sorts, and joins what overlaps or touches. Spans that end before they
// begin are dropped.
void normalize(Spans* spans);

Spans unite(const Spans& one, const Spans& other);
Spans subtract(const Spans& from, const Spans& what);
Spans intersect(const Spans& one, const Spans& other);
bool contains(const Spans& all, const Spans& some);

// So many of the lowest numbers, or all where there are fewer.
Spans lowest(const Spans& spans, uint64_t count);

// How many numbers, in thousandths, at most `AMOUNT_MAX`.
int64_t amountOf(const Spans& spans);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_SPANS_HPP__
