#include "adapter/chop.hpp"

#include <algorithm>

using std::vector;

namespace allocator {
namespace adapter {
namespace {

Option<Resource> takeScalar(const Resource& resource, int64_t amount)
{
  mesos::Value::Scalar target;
  target.set_value(static_cast<double>(amount) / 1000);

  Resource taken = resource;
  if (!Resources::shrink(&taken, target)) {
    return None();
  }

  return taken;
}


Option<Resource> takeRanges(const Resource& resource, uint64_t count)
{
  Resource taken = resource;
  taken.mutable_ranges()->clear_range();

  for (const mesos::Value::Range& range : resource.ranges().range()) {
    if (count == 0) {
      break;
    }

    const uint64_t there = range.end() - range.begin() + 1;
    const uint64_t some = std::min(there, count);
    mesos::Value::Range* part = taken.mutable_ranges()->add_range();
    part->set_begin(range.begin());
    part->set_end(range.begin() + some - 1);
    count -= some;
  }

  return taken;
}


Option<Resource> takeSet(const Resource& resource, uint64_t count)
{
  Resource taken = resource;
  taken.mutable_set()->clear_item();

  for (const std::string& item : resource.set().item()) {
    if (count == 0) {
      break;
    }

    taken.mutable_set()->add_item(item);
    --count;
  }

  return taken;
}

} // namespace {


Option<Resource> take(const Resource& resource, int64_t amount)
{
  if (amount <= 0) {
    return None();
  }

  if (amountOf(resource) <= amount) {
    return resource;
  }

  // A copy of a shared volume is whole.
  if (resource.has_shared()) {
    return None();
  }

  if (resource.type() == mesos::Value::SCALAR) {
    return takeScalar(resource, amount);
  }

  const uint64_t count = static_cast<uint64_t>(amount) / 1000;

  if (count == 0) {
    return None();
  }

  return resource.type() == mesos::Value::RANGES ? takeRanges(resource, count)
                                                 : takeSet(resource, count);
}


Resources chop(const Resources& pool, const KindTable& kinds, Amounts* wanted)
{
  // Objects to split, with the place of their kind in `wanted`.
  vector<std::pair<const Resource*, int64_t*>> toSplit;

  auto amountOfKind = [&](uint32_t kind) -> int64_t* {
    for (auto& entry : *wanted) {
      if (entry.first == kind) {
        return &entry.second;
      }
    }
    return nullptr;
  };

  // Mostly whole objects are wanted, and those need not be copied.
  Resources result = pool.filter([&](const Resource& resource) {
    const uint32_t kind = kinds.find(resource);
    int64_t* left = kind == KindTable::NONE ? nullptr : amountOfKind(kind);
    if (left == nullptr || *left <= 0) {
      return false;
    }

    const int64_t amount = amountOf(resource);
    if (amount > *left) {
      if (!kinds.whole(kind)) {
        toSplit.emplace_back(&resource, left);
      }
      return false;
    }

    *left -= amount;
    return true;
  });

  for (const auto& entry : toSplit) {
    const Option<Resource> taken = take(*entry.first, *entry.second);
    if (taken.isSome()) {
      *entry.second -= amountOf(taken.get());
      result += taken.get();
    }
  }

  return result;
}


Resources bound(const Resources& resources, const Quantities& most)
{
  Quantities left = most;
  Resources result;

  for (const Resource& resource : resources) {
    auto amount = left.find(resource.name());
    const bool bounded = amount != left.end() &&
        resource.type() == mesos::Value::SCALAR &&
        resource.reservations_size() == 0 && !resource.has_revocable();

    if (!bounded) {
      result += resource;
      continue;
    }

    const Option<Resource> taken = take(resource, amount->second);
    if (taken.isSome()) {
      amount->second -= amountOf(taken.get());
      result += taken.get();
    }
  }

  return result;
}

} // namespace adapter {
} // namespace allocator {
