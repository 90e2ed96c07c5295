#include "brain/books/spans.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "brain/user_input/bounds.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {

namespace {

// Whether it is sorted, without gaps of zero, and below RANGE_NUMBERS_MAX.
bool isNormal(const Spans& spans)
{
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    if (span.end < span.begin || span.end >= RANGE_NUMBERS_MAX ||
        (i > 0 && span.begin <= spans[i - 1].end + 1)) {
      return false;
    }
  }
  return true;
}


// Appends a span that begins no earlier than the last one.
void append(const Span& span, std::vector<Span>* spans)
{
  if (spans->empty()) {
    spans->push_back(span);
    return;
  }

  Span& last = spans->back();
  if (last.end == UINT64_MAX || span.begin <= last.end + 1) {
    last.end = std::max(last.end, span.end);
  } else {
    spans->push_back(span);
  }
}


// Collects spans in order; allocates only for more than one.
class Row
{
public:
  void add(const Span& span)
  {
    if (one.empty()) {
      one.push_back(span);
      return;
    }
    if (many.empty()) {
      many.push_back(one[0]);
    }
    many.push_back(span);
  }

  Spans take() { return many.empty() ? one : Spans(std::move(many)); }

private:
  Spans one;
  std::vector<Span> many;
};


bool beginsBefore(const Span& one, const Span& other)
{
  return one.begin < other.begin;
}

} // namespace {


void normalize(Spans* spans)
{
  if (isNormal(*spans)) {
    return;
  }

  std::vector<Span> taken;
  taken.reserve(spans->size());
  for (const Span& span : *spans) {
    if (span.begin <= span.end && span.begin < RANGE_NUMBERS_MAX) {
      taken.push_back(Span{
          span.begin, std::min<uint64_t>(span.end, RANGE_NUMBERS_MAX - 1)});
    }
  }

  *spans = joined(std::move(taken));
}


Spans joined(std::vector<Span>&& spans)
{
  std::sort(spans.begin(), spans.end(), beginsBefore);

  std::vector<Span> result;
  for (const Span& span : spans) {
    append(span, &result);
  }
  return Spans(std::move(result));
}


Spans unite(const Spans& one, const Spans& other)
{
  if (one.empty() || other.empty()) {
    return one.empty() ? other : one;
  }

  std::vector<Span> result;

  for (size_t i = 0, j = 0; i < one.size() || j < other.size();) {
    const bool mine =
        j == other.size() || (i < one.size() && beginsBefore(one[i], other[j]));
    append(mine ? one[i++] : other[j++], &result);
  }

  return Spans(std::move(result));
}


Spans subtract(const Spans& from, const Spans& what)
{
  if (what.empty()) {
    return from;
  }

  Row result;
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
        result.add(Span{rest.begin, hole.begin - 1});
      }

      left = hole.end < rest.end;
      if (left) {
        rest.begin = hole.end + 1;
      }
    }

    if (left) {
      result.add(rest);
    }
  }

  return result.take();
}


Spans intersect(const Spans& one, const Spans& other)
{
  Row result;

  for (size_t i = 0, j = 0; i < one.size() && j < other.size();) {
    const uint64_t begin = std::max(one[i].begin, other[j].begin);
    const uint64_t end = std::min(one[i].end, other[j].end);

    if (begin <= end) {
      result.add(Span{begin, end});
    }

    if (one[i].end < other[j].end) {
      ++i;
    } else {
      ++j;
    }
  }

  return result.take();
}


bool contains(const Spans& all, const Spans& some)
{
  return std::all_of(some.begin(), some.end(), [&](const Span& span) {
    // Spans do not touch, so a single one must contain it.
    const Span* after =
        std::upper_bound(all.begin(), all.end(), span, beginsBefore);
    return after != all.begin() && span.end <= (after - 1)->end;
  });
}


Spans lowest(const Spans& spans, uint64_t count)
{
  Spans result;

  for (const Span& span : spans) {
    if (count == 0) {
      break;
    }

    // Compare counts less one: the count of all 64-bit numbers would overflow.
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
