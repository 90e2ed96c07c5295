#include "brain/deciding/gates.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace allocator {
namespace brain {
namespace {

int64_t* amountOfKind(uint32_t kind, Amounts* wanted)
{
  for (auto& entry : *wanted) {
    if (entry.first == kind && kind != Kinds::NONE) {
      return &entry.second;
    }
  }
  return nullptr;
}


// So much of a part as can be given of at most `amount`; what cannot be
// divided is given in whole objects. Nothing where its amount is 0.
Part upTo(const Part& part, const Traits& traits, int64_t amount)
{
  Part result{part.resourceClass, std::min(part.amount, amount), Spans()};

  if (traits.unit > 0) {
    result.amount -= result.amount % traits.unit;
  } else if (traits.type != Type::SCALAR) {
    result.spans = lowest(part.spans, result.amount / 1000);
    result.amount = amountOf(result.spans);
  }

  return result;
}


// Takes unreserved, non-revocable scalars down to what quotas leave, all
// of a name together.
Parts bounded(
    const Cluster& cluster,
    uint32_t role,
    Parts wanted,
    bool* byLimit,
    bool* byHeadroom)
{
  if (!cluster.sums.hasQuotas()) {
    return wanted;
  }

  Amounts asked;
  for (const Part& part : wanted) {
    const ResourceClasses::Row& resourceClass =
        cluster.classes.row(part.resourceClass);
    if (resourceClass.traits.quotaCounts()) {
      change(resourceClass.name, part.amount, &asked);
    }
  }

  Amounts most;
  for (const auto& entry : asked) {
    const int64_t limit = cluster.sums.limitLeft(role, entry.first);
    const int64_t headroom = cluster.sums.headroomLeft(role, entry.first);
    *byLimit = *byLimit || limit < entry.second;
    *byHeadroom = *byHeadroom || headroom < entry.second;
    most.emplace_back(entry.first, std::min(limit, headroom));
  }

  if (!*byLimit && !*byHeadroom) {
    return wanted;
  }

  Parts result;
  for (const Part& part : wanted) {
    const ResourceClasses::Row& resourceClass =
        cluster.classes.row(part.resourceClass);
    int64_t* left = resourceClass.traits.quotaCounts()
        ? amountOfKind(resourceClass.name, &most)
        : nullptr;

    if (left == nullptr) {
      result.push_back(part);
      continue;
    }

    const Part some = upTo(part, resourceClass.traits, *left);
    if (some.amount > 0) {
      *left -= some.amount;
      result.push_back(some);
    }
  }

  return result;
}


bool reaches(
    const Cluster& cluster,
    const Parts& offer,
    const Quantities& least)
{
  return std::all_of(
      least.begin(), least.end(), [&](const Quantities::value_type& entry) {
        int64_t amount = 0;
        for (const Part& part : offer) {
          if (cluster.classes.traits(part.resourceClass).name == entry.first) {
            amount += part.amount;
          }
        }
        return amount >= entry.second;
      });
}


bool reachesMinimum(
    const Cluster& cluster,
    const Pair& pair,
    const Parts& offer)
{
  if (offer.empty()) {
    return false;
  }

  const Framework& framework = *cluster.frameworks.find(pair.framework);
  const std::vector<Quantities>* anyOf = nullptr;
  auto own = framework.minimum.find(pair.role);

  if (own != framework.minimum.end()) {
    anyOf = &own->second;
  } else if (cluster.options.hasMinimum) {
    anyOf = &cluster.options.minimum;
  }

  return anyOf == nullptr || anyOf->empty() ||
      std::any_of(anyOf->begin(), anyOf->end(), [&](const Quantities& least) {
           return reaches(cluster, offer, least);
         });
}


} // namespace {


Parts take(const Cluster& cluster, Parts pool, Amounts* wanted)
{
  Parts result;
  result.reserve(pool.size());

  // Parts to split, with the place of their kind in `wanted`.
  std::vector<std::pair<const Part*, int64_t*>> toSplit;

  for (Part& part : pool) {
    const uint32_t kind = cluster.kinds.find(part.resourceClass);
    int64_t* left = amountOfKind(kind, wanted);

    if (left == nullptr || *left <= 0) {
      continue;
    }

    const Traits& traits = cluster.classes.traits(part.resourceClass);

    if (part.amount <= *left) {
      *left -= part.amount;
      result.push_back(std::move(part));
    } else if (traits.unit > 0) {
      const Part some = upTo(part, traits, *left);
      *left -= some.amount;
      add(some, &result);
    } else if (!cluster.kinds.whole(kind)) {
      toSplit.emplace_back(&part, left);
    }
  }

  for (const auto& entry : toSplit) {
    const Traits& traits = cluster.classes.traits(entry.first->resourceClass);
    const Part some = upTo(*entry.first, traits, *entry.second);
    *entry.second -= some.amount;
    add(some, &result);
  }

  return result;
}


Admission applyQuotaAndFilters(
    const Cluster& cluster,
    const Pair& pair,
    Parts wanted,
    int64_t nowMs)
{
  bool byLimit = false;
  bool byHeadroom = false;

  Admission admission;
  admission.given =
      bounded(cluster, pair.role, std::move(wanted), &byLimit, &byHeadroom);
  admission.bounded = byLimit || byHeadroom;

  if (!reachesMinimum(cluster, pair, admission.given)) {
    return refuse(
        byLimit          ? wire::OUTCOME_REASON_LIMIT
            : byHeadroom ? wire::OUTCOME_REASON_HEADROOM
                         : wire::OUTCOME_REASON_BELOW_MINIMUM);
  }

  const Agent& agent = *cluster.agents.find(pair.agent);
  if (cluster.filters.covers(
          agent, pair.framework, pair.role, admission.given, nowMs)) {
    return refuse(wire::OUTCOME_REASON_FILTERED);
  }

  admission.reason = wire::OUTCOME_REASON_OFFERED;
  return admission;
}

} // namespace brain {
} // namespace allocator {
