#include "brain/books/resource_classes.hpp"

#include <algorithm>

#include "brain/user_input/bounds.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {
namespace {

bool before(const Part& part, uint32_t resourceClass)
{
  return part.resourceClass < resourceClass;
}


bool isBefore(const Amounts::value_type& entry, uint32_t number)
{
  return entry.first < number;
}


// Recomputes the amount of ranges and sets.
void count(Part* part)
{
  if (!part->spans.empty()) {
    part->amount = amountOf(part->spans);
  }
}

} // namespace {


void normalize(Parts* parts)
{
  // Common case: nothing to do.
  const auto isBehind = [](const Part& one, const Part& other) {
    return other.resourceClass <= one.resourceClass || other.amount <= 0;
  };
  if (parts->empty() ||
      (parts->front().amount > 0 &&
       std::adjacent_find(parts->begin(), parts->end(), isBehind) ==
           parts->end())) {
    return;
  }

  std::stable_sort(
      parts->begin(), parts->end(), [](const Part& one, const Part& other) {
        return one.resourceClass < other.resourceClass;
      });

  Parts result;
  result.reserve(parts->size());
  for (const Part& part : *parts) {
    add(part, &result);
  }
  parts->swap(result);
}


void add(const Part& more, Parts* to)
{
  if (more.amount <= 0) {
    return;
  }

  auto place =
      std::lower_bound(to->begin(), to->end(), more.resourceClass, before);

  if (place == to->end() || place->resourceClass != more.resourceClass) {
    to->insert(place, more);
    return;
  }

  if (more.spans.empty()) {
    place->amount += more.amount;
  } else {
    place->spans = unite(place->spans, more.spans);
    count(&*place);
  }
}


void add(const Parts& more, Parts* to)
{
  if (to->empty()) {
    *to = more;
    return;
  }

  for (const Part& part : more) {
    add(part, to);
  }
}


void subtract(const Parts& what, Parts* from)
{
  for (const Part& part : what) {
    auto place = std::lower_bound(
        from->begin(), from->end(), part.resourceClass, before);

    if (place == from->end() || place->resourceClass != part.resourceClass) {
      continue;
    }

    if (part.spans.empty()) {
      place->amount -= std::min(place->amount, part.amount);
    } else {
      place->spans = subtract(place->spans, part.spans);
      place->amount = amountOf(place->spans);
    }

    if (place->amount == 0) {
      from->erase(place);
    }
  }
}


bool contains(const Parts& all, const Parts& some)
{
  return std::all_of(some.begin(), some.end(), [&](const Part& part) {
    const Part* there = find(all, part.resourceClass);
    return there != nullptr && there->amount >= part.amount &&
        (part.spans.empty() || contains(there->spans, part.spans));
  });
}


Parts common(const Parts& one, const Parts& other)
{
  Parts result;

  for (const Part& part : one) {
    const Part* there = find(other, part.resourceClass);
    if (there == nullptr) {
      continue;
    }

    Part both = part;
    if (part.spans.empty()) {
      both.amount = std::min(part.amount, there->amount);
    } else {
      both.spans = intersect(part.spans, there->spans);
      both.amount = amountOf(both.spans);
    }

    if (both.amount > 0) {
      result.push_back(both);
    }
  }

  return result;
}


const Part* find(const Parts& parts, uint32_t resourceClass)
{
  auto place =
      std::lower_bound(parts.begin(), parts.end(), resourceClass, before);
  return place == parts.end() || place->resourceClass != resourceClass
      ? nullptr
      : &*place;
}


int64_t countable(int64_t amount, int64_t copies)
{
  const int64_t each = std::min<int64_t>(amount, OBJECT_AMOUNT_MAX);
  return each *
      std::min(copies, session::AMOUNT_MAX / std::max<int64_t>(each, 1));
}


int64_t amountOf(const Amounts& amounts, uint32_t number)
{
  auto place =
      std::lower_bound(amounts.begin(), amounts.end(), number, isBefore);
  const bool isThere = place != amounts.end() && place->first == number;
  return isThere ? place->second : 0;
}


void change(uint32_t number, int64_t delta, Amounts* amounts)
{
  auto place =
      std::lower_bound(amounts->begin(), amounts->end(), number, isBefore);

  if (place == amounts->end() || place->first != number) {
    if (delta != 0) {
      amounts->emplace(place, number, delta);
    }
    return;
  }

  place->second += delta;
  if (place->second == 0) {
    amounts->erase(place);
  }
}


uint32_t Names::use(const std::string& name)
{
  const uint32_t next =
      free.empty() ? static_cast<uint32_t>(rows.size()) : free.back();
  auto place = numbers.emplace(name, next);

  if (place.second) {
    if (next == rows.size()) {
      rows.emplace_back();
    } else {
      free.pop_back();
    }
    rows[next].name = name;
  }

  ++rows[place.first->second].uses;
  return place.first->second;
}


void Names::disuse(uint32_t number)
{
  Row& row = rows[number];

  if (--row.uses == 0) {
    numbers.erase(row.name);
    row.name.clear();
    free.push_back(number);
  }
}


bool ResourceClasses::define(
    uint32_t resourceClass,
    const Traits& traits,
    uint32_t reservedTop,
    const std::string& reportedRole)
{
  if (defined(resourceClass)) {
    return false;
  }

  if (resourceClass >= rows.size()) {
    rows.resize(resourceClass + 1);
  }

  Row& row = rows[resourceClass];
  row.traits = traits;
  row.name = names.use(traits.name);
  row.reservedTop = reservedTop;
  row.reportedRole = reportedRole;
  row.uses = 0;
  row.defined = true;
  idle.push_back(resourceClass);
  return true;
}


bool ResourceClasses::defined(const Parts& parts) const
{
  return std::all_of(parts.begin(), parts.end(), [this](const Part& part) {
    return defined(part.resourceClass);
  });
}


void ResourceClasses::setReporter(const Parts& parts, Reporter reporter)
{
  for (const Part& part : parts) {
    Row& row = rows[part.resourceClass];
    row.reporter = row.reporter == 0 ? reporter : row.reporter;
  }
}


void ResourceClasses::disuse(uint32_t resourceClass)
{
  if (--rows[resourceClass].uses == 0) {
    idle.push_back(resourceClass);
  }
}


std::vector<uint32_t> ResourceClasses::takeUnused()
{
  std::vector<uint32_t> result;

  for (uint32_t resourceClass : idle) {
    Row& row = rows[resourceClass];
    if (row.defined && row.uses == 0) {
      names.disuse(row.name);
      row = Row();
      result.push_back(resourceClass);
    }
  }

  idle.clear();
  return result;
}

} // namespace brain {
} // namespace allocator {
