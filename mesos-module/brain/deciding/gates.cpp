#include "brain/deciding/gates.hpp"

#include <algorithm>
#include <utility>

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

  return (resourceClass.reserved == 0 ||
          cluster.roles.isWithin(role, resourceClass.reserved)) &&
      (framework.shared || !traits.shared) &&
      (framework.revocable || !traits.revocable) &&
      (framework.refinement || traits.depth <= 1);
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

  // An agent of old would report tasks of such a framework without their
  // role, which no master survives.
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

  Parts taken = take(cluster, pool(cluster, pair), &wanted);

  if (taken.empty()) {
    return refuse(wire::OUTCOME_REASON_NOTHING_AVAILABLE);
  }

  Admission admission =
      applyQuotaAndFilters(cluster, pair, std::move(taken), nowMs);

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
