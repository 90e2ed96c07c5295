#include "brain/books/spans.hpp"

#include <algorithm>
#include <cstddef>

#include "brain/words/bounds.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {

void normalize(Spans* spans)
{
  // Mostly it is so already.
  if (spans->size() == 1 && (*spans)[0].begin <= (*spans)[0].end &&
      (*spans)[0].end < RANGE_NUMBERS_MAX) {
    return;
  }

  spans->truncate(
      std::remove_if(
          spans->begin(),
          spans->end(),
          [](const Span& span) {
            return span.end < span.begin || span.begin >= RANGE_NUMBERS_MAX;
          }) -
      spans->begin());

  for (Span& span : *spans) {
    span.end = std::min<uint64_t>(span.end, RANGE_NUMBERS_MAX - 1);
  }

  std::sort(spans->begin(), spans->end(), [](const Span& a, const Span& b) {
    return a.begin < b.begin;
  });

  size_t last = 0;
  for (size_t i = 1; i < spans->size(); ++i) {
    Span& before = (*spans)[last];
    const Span& span = (*spans)[i];

    if (before.end == UINT64_MAX || span.begin <= before.end + 1) {
      before.end = std::max(before.end, span.end);
    } else {
      (*spans)[++last] = span;
    }
  }

  spans->truncate(std::min(spans->size(), last + 1));
}


Spans unite(const Spans& one, const Spans& other)
{
  Spans result = one;
  for (const Span& span : other) {
    result.push_back(span);
  }
  normalize(&result);
  return result;
}


Spans subtract(const Spans& from, const Spans& what)
{
  Spans result;
  size_t next = 0;

  for (Span rest : from) {
    bool left = true;

    while (next < what.size() && what[next].end < rest.begin) {
      ++next;
    }

    for (size_t i = next; left && i < what.size(); ++i) {
      const Span& hole = what[i];
      if (hole.begin > rest.end) {
        break;
      }

      if (hole.begin > rest.begin) {
        result.push_back(Span{rest.begin, hole.begin - 1});
      }

      left = hole.end < rest.end;
      if (left) {
        rest.begin = hole.end + 1;
      }
    }

    if (left) {
      result.push_back(rest);
    }
  }

  return result;
}


Spans intersect(const Spans& one, const Spans& other)
{
  Spans result;

  for (size_t i = 0, j = 0; i < one.size() && j < other.size();) {
    const uint64_t begin = std::max(one[i].begin, other[j].begin);
    const uint64_t end = std::min(one[i].end, other[j].end);

    if (begin <= end) {
      result.push_back(Span{begin, end});
    }

    if (one[i].end < other[j].end) {
      ++i;
    } else {
      ++j;
    }
  }

  return result;
}


bool contains(const Spans& all, const Spans& some)
{
  return subtract(some, all).empty();
}


Spans lowest(const Spans& spans, uint64_t count)
{
  Spans result;

  for (const Span& span : spans) {
    if (count == 0) {
      break;
    }

    // One less than there are, for all numbers together are too many.
    const uint64_t more = std::min(span.end - span.begin, count - 1);
    result.push_back(Span{span.begin, span.begin + more});
    count -= more + 1;
  }

  return result;
}


int64_t amountOf(const Spans& spans)
{
  constexpr uint64_t MOST = session::AMOUNT_MAX / 1000;
  uint64_t count = 0;

  for (const Span& span : spans) {
    const uint64_t more = span.end - span.begin;
    count = more < MOST ? std::min(MOST, count + more + 1) : MOST;
  }

  return static_cast<int64_t>(count * 1000);
}

} // namespace brain {
} // namespace allocator {
