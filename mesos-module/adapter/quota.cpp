#include "adapter/quota.hpp"

#include <algorithm>
#include <limits>

#include "adapter/chop.hpp"

using std::string;

namespace allocator {
namespace adapter {
namespace {

int64_t get(const Quantities& quantities, const string& name)
{
  auto found = quantities.find(name);
  return found == quantities.end() ? 0 : found->second;
}

} // namespace {


QuotaBook::QuotaBook(const Cluster& state)
{
  for (const auto& entry : state.quotas) {
    Role& role = roles[entry.first];

    for (const auto& quantity : entry.second.guarantees) {
      role.guarantee[quantity.first] = thousandths(quantity.second);
    }

    for (const auto& quantity : entry.second.limits) {
      role.limit[quantity.first] = thousandths(quantity.second);
    }
  }

  if (roles.empty()) {
    return;
  }

  const QuotaUsage::Sums& usage = state.usage.of(state.ledger);
  free = usage.free;

  for (auto& entry : roles) {
    auto consumed = usage.consumed.find(entry.first);
    if (consumed != usage.consumed.end()) {
      entry.second.consumed = consumed->second;
    }
  }

  for (const auto& entry : roles) {
    for (const auto& guarantee : entry.second.guarantee) {
      const int64_t missing =
          guarantee.second - get(entry.second.consumed, guarantee.first);
      required[guarantee.first] += std::max<int64_t>(0, missing);
    }
  }
}


Resources QuotaBook::bounded(
    const string& path,
    const Resources& offer,
    bool* byLimit,
    bool* byHeadroom) const
{
  if (roles.empty()) {
    return offer;
  }

  constexpr int64_t UNBOUNDED = std::numeric_limits<int64_t>::max();
  auto found = roles.find(topLevel(path));
  Quantities amounts;
  Quantities most;

  for (const Resource& resource : offer) {
    if (countsAgainstQuota(resource)) {
      amounts[resource.name()] += amountOf(resource);
    }
  }

  for (const auto& entry : amounts) {
    const string& name = entry.first;
    int64_t limit = UNBOUNDED;
    int64_t guaranteed = 0;

    if (found != roles.end()) {
      const Role& role = found->second;
      const int64_t consumed = get(role.consumed, name);
      auto bound = role.limit.find(name);

      if (bound != role.limit.end()) {
        limit = std::max<int64_t>(0, bound->second - consumed);
      }

      guaranteed = std::max<int64_t>(0, get(role.guarantee, name) - consumed);
    }

    int64_t headroom = UNBOUNDED;
    if (get(required, name) > 0) {
      const int64_t surplus = get(free, name) - get(required, name);
      headroom = guaranteed + std::max<int64_t>(0, surplus);
    }

    *byLimit = *byLimit || limit < entry.second;
    *byHeadroom = *byHeadroom || headroom < entry.second;

    if (limit != UNBOUNDED || headroom != UNBOUNDED) {
      most[name] = std::min(limit, headroom);
    }
  }

  return most.empty() ? offer : bound(offer, most);
}


void QuotaBook::charge(const string& path, const Resources& offer)
{
  if (roles.empty()) {
    return;
  }

  auto found = roles.find(topLevel(path));

  for (const Resource& resource : offer) {
    if (!countsAgainstQuota(resource)) {
      continue;
    }

    const string& name = resource.name();
    const int64_t amount = amountOf(resource);
    free[name] -= amount;

    if (found != roles.end()) {
      Role& role = found->second;
      const int64_t missing = std::max<int64_t>(
          0, get(role.guarantee, name) - get(role.consumed, name));
      required[name] -= std::min(missing, amount);
      role.consumed[name] += amount;
    }
  }
}

} // namespace adapter {
} // namespace allocator {
