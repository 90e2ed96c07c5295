#ifndef __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__

#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
//
// Mostly there is one span or none, and to ask for memory costs more than
// all that is done with them: so one alone lies in the object itself.
class Spans
{
public:
  Spans() {}

  Spans(std::initializer_list<Span> spans)
  {
    for (const Span& span : spans) {
      push_back(span);
    }
  }

  size_t size() const { return many.empty() ? size_t(isOne) : many.size(); }
  bool empty() const { return size() == 0; }

  Span* begin() { return many.empty() ? &one : many.data(); }
  Span* end() { return begin() + size(); }
  const Span* begin() const { return many.empty() ? &one : many.data(); }
  const Span* end() const { return begin() + size(); }

  Span& operator[](size_t place) { return begin()[place]; }
  const Span& operator[](size_t place) const { return begin()[place]; }

  void push_back(const Span& span)
  {
    if (empty()) {
      one = span;
      isOne = true;
      return;
    }
    if (many.empty()) {
      many.push_back(one);
      isOne = false;
    }
    many.push_back(span);
  }

  // Keeps so many of the first ones, of which there are as many.
  void truncate(size_t count)
  {
    if (count > 1) {
      many.resize(count);
      return;
    }
    one = count == 1 ? begin()[0] : Span{0, 0};
    isOne = count == 1;
    many.clear();
  }

  bool operator==(const Spans& that) const
  {
    return isOne == that.isOne && (!isOne || one == that.one) &&
        many == that.many;
  }

  bool operator!=(const Spans& that) const { return !(*this == that); }

private:
  // What was moved away leaves `isOne` as it was, which is a value, too.
  Span one{0, 0};
  bool isOne = false;
  std::vector<Span> many; // All of them where there are several, else none.
};

// Sorts, and joins what overlaps or touches. Spans that end before they
// begin are dropped, and numbers beyond `RANGE_NUMBERS_MAX`.
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

#endif // __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__
