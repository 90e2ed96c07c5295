#ifndef __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace allocator {
namespace brain {

// Whole numbers, both ends included.
struct Span
{
  uint64_t begin;
  uint64_t end;

  bool operator==(const Span& that) const
  {
    return begin == that.begin && end == that.end;
  }
};


// A set of whole numbers: ports, or set items as the adapter numbers them.
// Sorted; spans neither overlap nor touch.
//
// A single span, the common case, is stored inline to avoid an allocation.
// Copies share a vector of several spans, because a task may hold tens of
// thousands of single ports, and each check of an agent copies its free spans.
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

  explicit Spans(std::vector<Span>&& spans)
  {
    if (spans.size() > 1) {
      many = std::make_shared<std::vector<Span>>(std::move(spans));
    } else if (!spans.empty()) {
      push_back(spans[0]);
    }
  }

  size_t size() const { return many ? many->size() : size_t(isOne); }
  bool empty() const { return size() == 0; }

  const Span* begin() const { return many ? many->data() : &one; }
  const Span* end() const { return begin() + size(); }
  const Span& operator[](size_t place) const { return begin()[place]; }

  void push_back(const Span& span)
  {
    if (empty()) {
      one = span;
      isOne = true;
      return;
    }
    if (!many) {
      many = std::make_shared<std::vector<Span>>(1, one);
      isOne = false;
    } else if (many.use_count() > 1) {
      many = std::make_shared<std::vector<Span>>(*many);
    }
    many->push_back(span);
  }

  bool operator==(const Spans& that) const
  {
    return isOne == that.isOne && (!isOne || one == that.one) &&
        (many == that.many || (many && that.many && *many == *that.many));
  }

  bool operator!=(const Spans& that) const { return !(*this == that); }

private:
  // A moved-from object keeps `isOne`, and remains a valid value.
  Span one{0, 0};
  bool isOne = false;

  // All spans if there are several, else null. If shared, copied before a
  // change.
  std::shared_ptr<std::vector<Span>> many;
};

// Sorts and merges; drops empty spans and numbers from `RANGE_NUMBERS_MAX` on.
void normalize(Spans* spans);

Spans unite(const Spans& one, const Spans& other);

// The union of spans in any order.
Spans joined(std::vector<Span>&& spans);

Spans subtract(const Spans& from, const Spans& what);
Spans intersect(const Spans& one, const Spans& other);

// Takes time proportional to the number of spans of `some`, times the logarithm
// of that of `all`.
bool contains(const Spans& all, const Spans& some);

// The `count` lowest numbers, or all.
Spans lowest(const Spans& spans, uint64_t count);

// Count in thousandths, at most `AMOUNT_MAX`.
int64_t amountOf(const Spans& spans);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__
