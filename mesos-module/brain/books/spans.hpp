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
// all that is done with them: so one alone lies in the object itself. Several
// are shared by all copies: one task may hold tens of thousands of single
// ports, and whoever looks at an agent copies what is free there.
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
  // What was moved away leaves `isOne` as it was, which is a value, too.
  Span one{0, 0};
  bool isOne = false;

  // All of them where there are several, else null. Nobody changes what
  // others have, too.
  std::shared_ptr<std::vector<Span>> many;
};

// Sorts, and joins what overlaps or touches. Spans that end before they
// begin are dropped, and numbers beyond `RANGE_NUMBERS_MAX`.
void normalize(Spans* spans);

Spans unite(const Spans& one, const Spans& other);

// What any of them has; they need be neither sorted nor apart.
Spans joined(std::vector<Span>&& spans);

Spans subtract(const Spans& from, const Spans& what);
Spans intersect(const Spans& one, const Spans& other);

// Costs what `some` has of spans, however many `all` has.
bool contains(const Spans& all, const Spans& some);

// So many of the lowest numbers, or all where there are fewer.
Spans lowest(const Spans& spans, uint64_t count);

// How many numbers, in thousandths, at most `AMOUNT_MAX`.
int64_t amountOf(const Spans& spans);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_SPANS_HPP__
