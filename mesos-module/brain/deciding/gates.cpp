#include "brain/deciding/gates.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace allocator {
namespace brain {
namespace {

bool isRemote(const Cluster& cluster, const Agent& agent)
{
  return !agent.region.empty() && !cluster.options.region.empty() &&
      agent.region != cluster.options.region;
}


bool isAllowed(
    const Cluster& cluster,
    const Framework& framework,
    uint32_t role,
    const ResourceClasses::Row& resourceClass)
{
  const Traits& traits = resourceClass.traits;

  return (traits.depth == 0 ||
          cluster.roles.isWithin(role, traits.reservedRole)) &&
      (framework.shared || !traits.shared) &&
      (framework.revocable || !traits.revocable) &&
      (framework.refinement || traits.depth <= 1);
}


int64_t* amountOfKind(uint32_t kind, Amounts* wanted)
{
  auto at = std::lower_bound(
      wanted->begin(),
      wanted->end(),
      kind,
      [](const Amounts::value_type& entry, uint32_t number) {
        return entry.first < number;
      });
  const bool isThere =
      kind != Kinds::NONE && at != wanted->end() && at->first == kind;
  return isThere ? &at->second : nullptr;
}


// The number of the agent's free spans in the resource classes of `given`.
// Filters and booking take time proportional to it.
size_t spansBehind(const Agent& agent, const Parts& given)
{
  size_t result = 0;
  for (const Part& part : given) {
    if (!part.spans.empty()) {
      result += Books::find(agent, part.resourceClass)->free.size();
    }
  }
  return result;
}


// The largest part of `part` that fits in `amount`, of whole objects if
// indivisible. May be empty.
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


// Reduces unreserved, non-revocable scalars to what quotas leave, per name.
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


wire::OutcomeReason
admitFramework(const Cluster& cluster, uint32_t number, uint32_t role)
{
  if (cluster.offersPaused()) {
    return wire::OUTCOME_REASON_PAUSED;
  }

  const Framework* framework = cluster.frameworks.find(number);

  if (framework == nullptr) {
    return wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK;
  }

  if (!framework->active) {
    return wire::OUTCOME_REASON_INACTIVE_FRAMEWORK;
  }

  if (framework->roles.count(role) == 0) {
    return wire::OUTCOME_REASON_BAD_ROLE;
  }

  return framework->suppressed.count(role) > 0 ? wire::OUTCOME_REASON_SUPPRESSED
                                               : PASS;
}


wire::OutcomeReason admitAgent(const Cluster& cluster, uint32_t number)
{
  const Agent* agent = cluster.agents.find(number);

  if (agent == nullptr) {
    return wire::OUTCOME_REASON_UNKNOWN_AGENT;
  }

  const bool listed =
      !cluster.restricted || cluster.whitelist.count(agent->hostname) > 0;

  return agent->active && listed ? PASS : wire::OUTCOME_REASON_INACTIVE_AGENT;
}


wire::OutcomeReason admitPair(const Cluster& cluster, const Pair& pair)
{
  const Framework& framework = *cluster.frameworks.find(pair.framework);
  const Agent& agent = *cluster.agents.find(pair.agent);

  if (!framework.excluded.empty()) {
    auto excluded = framework.excluded.find(pair.role);
    if (excluded != framework.excluded.end() &&
        pair.agent < excluded->second.size() && excluded->second[pair.agent]) {
      return wire::OUTCOME_REASON_CONSTRAINT;
    }
  }

  const bool gpus = cluster.options.filterGpus && !framework.gpus && agent.gpus;

  const bool remote = !framework.regionAware && isRemote(cluster, agent);

  // An agent without MULTI_ROLE would report tasks of such a framework without
  // a role, which makes the master abort.
  const bool roles = framework.multiRole && !agent.multiRole;

  const bool nested =
      !agent.hierarchicalRole && cluster.roles.nested(pair.role);

  return gpus || remote || roles || nested ? wire::OUTCOME_REASON_CAPABILITY
                                           : PASS;
}


Parts pool(const Cluster& cluster, const Pair& pair)
{
  const Framework& framework = *cluster.frameworks.find(pair.framework);
  const Agent& agent = *cluster.agents.find(pair.agent);

  Parts result;
  result.reserve(agent.resources.size());

  for (const AgentResource& resource : agent.resources) {
    const ResourceClasses::Row& resourceClass =
        cluster.classes.row(resource.resourceClass);
    int64_t amount = cluster.books.free(resource);

    if (amount <= 0 ||
        !isAllowed(cluster, framework, pair.role, resourceClass)) {
      continue;
    }

    if (resourceClass.traits.shared) {
      amount = std::min(amount, resourceClass.traits.unit);
    }

    result.push_back(Part{resource.resourceClass, amount, resource.free});
  }

  return result;
}


Parts take(const Cluster& cluster, Parts pool, Amounts* wanted)
{
  Parts result;
  result.reserve(pool.size());

  // Parts to split, with the entry of their kind in `wanted`.
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
  admission.work = spansBehind(agent, admission.given) / SPANS_AS_ONE;

  const bool isFiltered = cluster.filters.covers(
      agent, pair.framework, pair.role, admission.given, nowMs);
  if (isFiltered) {
    admission.given.clear();
  }

  admission.reason =
      isFiltered ? wire::OUTCOME_REASON_FILTERED : wire::OUTCOME_REASON_OFFERED;
  return admission;
}


Admission
judge(const Cluster& cluster, const Pair& pair, Amounts wanted, int64_t nowMs)
{
  wire::OutcomeReason reason =
      admitFramework(cluster, pair.framework, pair.role);

  if (reason == PASS) {
    reason = admitAgent(cluster, pair.agent);
  }

  if (reason == PASS) {
    reason = admitPair(cluster, pair);
  }

  if (reason != PASS) {
    return refuse(reason);
  }

  int64_t asked = 0;
  for (const auto& entry : wanted) {
    if (entry.second < 0 || !cluster.kinds.known(entry.first)) {
      return refuse(wire::OUTCOME_REASON_MALFORMED);
    }
    asked = std::max(asked, entry.second);
  }

  if (asked == 0) {
    return refuse(wire::OUTCOME_REASON_MALFORMED);
  }

  std::sort(wanted.begin(), wanted.end());
  const size_t classes = cluster.agents.find(pair.agent)->resources.size();
  Parts taken = take(cluster, pool(cluster, pair), &wanted);

  Admission admission = taken.empty()
      ? refuse(wire::OUTCOME_REASON_NOTHING_AVAILABLE)
      : applyQuotaAndFilters(cluster, pair, std::move(taken), nowMs);
  admission.work += classes;

  if (admission.reason == wire::OUTCOME_REASON_OFFERED) {
    const bool missing = std::any_of(
        wanted.begin(), wanted.end(), [](const Amounts::value_type& left) {
          return left.second != 0;
        });

    if (missing || admission.bounded) {
      admission.reason = wire::OUTCOME_REASON_PARTIAL;
    }
  }

  return admission;
}

} // namespace brain {
} // namespace allocator {
