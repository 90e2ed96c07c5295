#include "adapter/gates.hpp"

#include <algorithm>

#include "adapter/chop.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

constexpr wire::OutcomeReason PASS = wire::OUTCOME_REASON_UNSPECIFIED;


bool hasGpus(const Resources& total)
{
  for (const Resource& resource : total) {
    if (resource.name() == "gpus" && amountOf(resource) > 0) {
      return true;
    }
  }

  return false;
}


bool isRemote(const Cluster& state, const SlaveInfo& info)
{
  if (!info.has_domain() || !info.domain().has_fault_domain() ||
      state.options.domain.isNone() ||
      !state.options.domain->has_fault_domain()) {
    return false;
  }

  return info.domain().fault_domain().region().name() !=
      state.options.domain->fault_domain().region().name();
}


// `given` consists of what was free on the agent, perhaps made smaller.
bool isAll(const Cluster& state, const SlaveID& agentId, const Resources& given)
{
  const Ledger::Agent* books = state.ledger.find(agentId);

  if (books == nullptr || given.size() != books->available().size()) {
    return false;
  }

  int64_t difference = 0;
  for (const Resource& resource : books->available()) {
    // However often it is offered, a shared volume stays free.
    if (resource.has_shared()) {
      return false;
    }
    difference += amountOf(resource);
  }

  for (const Resource& resource : given) {
    difference -= amountOf(resource);
  }

  return difference == 0;
}


Verdict refuse(wire::OutcomeReason reason)
{
  Verdict verdict;
  verdict.reason = reason;
  return verdict;
}

} // namespace {


wire::OutcomeReason admitFramework(
    const Cluster& state,
    const FrameworkID& frameworkId,
    const string& role)
{
  if (state.held()) {
    return wire::OUTCOME_REASON_PAUSED;
  }

  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK;
  }

  const Framework& framework = found->second;

  if (!framework.active) {
    return wire::OUTCOME_REASON_INACTIVE_FRAMEWORK;
  }

  if (framework.roles.count(role) == 0) {
    return wire::OUTCOME_REASON_BAD_ROLE;
  }

  return framework.suppressed.count(role) > 0 ? wire::OUTCOME_REASON_SUPPRESSED
                                              : PASS;
}


wire::OutcomeReason admitAgent(const Cluster& state, const SlaveID& agentId)
{
  auto found = state.agents.find(agentId);
  if (found == state.agents.end()) {
    return wire::OUTCOME_REASON_UNKNOWN_AGENT;
  }

  const Agent& agent = found->second;
  const bool listed = state.whitelist.isNone() ||
      state.whitelist->contains(agent.info.hostname());

  return agent.active && listed ? PASS : wire::OUTCOME_REASON_INACTIVE_AGENT;
}


wire::OutcomeReason admitPair(const Cluster& state, const Pair& pair)
{
  const Framework& framework = state.frameworks.at(pair.frameworkId);
  const Agent& agent = state.agents.at(pair.agentId);

  auto excluded = framework.excluded.find(pair.role);
  if (excluded != framework.excluded.end() &&
      excluded->second.contains(pair.agentId)) {
    return wire::OUTCOME_REASON_CONSTRAINT;
  }

  const Ledger::Agent* books = state.ledger.find(pair.agentId);
  const bool gpus = state.options.filterGpuResources && !framework.gpus &&
      books != nullptr && hasGpus(books->total);

  const bool remote = !framework.regionAware && isRemote(state, agent.info);

  // An agent of old would report tasks of such a framework without their
  // role, which no master survives.
  const bool roles = framework.multiRole && !agent.multiRole;

  const bool nested =
      !agent.hierarchicalRole && pair.role.find('/') != string::npos;

  return gpus || remote || roles || nested ? wire::OUTCOME_REASON_CAPABILITY
                                           : PASS;
}


Resources pool(const Cluster& state, const Pair& pair)
{
  const Framework& framework = state.frameworks.at(pair.frameworkId);
  const Ledger::Agent* books = state.ledger.find(pair.agentId);

  if (books == nullptr) {
    return Resources();
  }

  const string& role = pair.role;

  return books->available().filter([&](const Resource& resource) {
    return Resources::isAllocatableTo(resource, role) &&
        (framework.shared || !Resources::isShared(resource)) &&
        (framework.revocable || !Resources::isRevocable(resource)) &&
        (framework.refinement || !Resources::hasRefinedReservations(resource));
  });
}


bool reachesMinimum(
    const Cluster& state,
    const Framework& framework,
    const string& role,
    const Resources& offer)
{
  if (offer.empty()) {
    return false;
  }

  const vector<ResourceQuantities>* anyOf = nullptr;
  auto own = framework.minimum.find(role);

  if (own != framework.minimum.end()) {
    anyOf = &own->second;
  } else if (state.options.minAllocatableResources.isSome()) {
    anyOf = &state.options.minAllocatableResources.get();
  }

  if (anyOf == nullptr || anyOf->empty()) {
    return true;
  }

  return std::any_of(
      anyOf->begin(), anyOf->end(), [&](const ResourceQuantities& least) {
        return offer.contains(least);
      });
}


Verdict finish(
    const Cluster& state,
    const Pair& pair,
    const Resources& wanted,
    const QuotaBook& quotas,
    int64_t nowMs)
{
  bool byLimit = false;
  bool byHeadroom = false;

  Verdict verdict;
  verdict.given = quotas.bounded(pair.role, wanted, &byLimit, &byHeadroom);
  verdict.bounded = byLimit || byHeadroom;

  if (!reachesMinimum(
          state,
          state.frameworks.at(pair.frameworkId),
          pair.role,
          verdict.given)) {
    return refuse(
        byLimit          ? wire::OUTCOME_REASON_LIMIT
            : byHeadroom ? wire::OUTCOME_REASON_HEADROOM
                         : wire::OUTCOME_REASON_BELOW_MINIMUM);
  }

  if (state.filters.covers(
          pair.frameworkId, pair.role, pair.agentId, verdict.given, nowMs)) {
    return refuse(wire::OUTCOME_REASON_FILTERED);
  }

  verdict.all = isAll(state, pair.agentId, verdict.given);
  verdict.reason = wire::OUTCOME_REASON_OFFERED;
  return verdict;
}


Verdict judge(
    const Cluster& state,
    const Pair& pair,
    const Amounts& wanted,
    const QuotaBook& quotas,
    int64_t nowMs)
{
  wire::OutcomeReason reason =
      admitFramework(state, pair.frameworkId, pair.role);

  if (reason == PASS) {
    reason = admitAgent(state, pair.agentId);
  }

  if (reason == PASS) {
    reason = admitPair(state, pair);
  }

  if (reason != PASS) {
    return refuse(reason);
  }

  int64_t asked = 0;
  for (const auto& entry : wanted) {
    if (entry.second < 0 || !state.handles.kinds.known(entry.first)) {
      return refuse(wire::OUTCOME_REASON_MALFORMED);
    }
    asked = std::max(asked, entry.second);
  }

  if (asked == 0) {
    return refuse(wire::OUTCOME_REASON_MALFORMED);
  }

  Amounts left = wanted;
  const Resources taken = chop(pool(state, pair), state.handles.kinds, &left);

  if (taken.empty()) {
    return refuse(wire::OUTCOME_REASON_NOTHING_AVAILABLE);
  }

  Verdict verdict = finish(state, pair, taken, quotas, nowMs);

  if (verdict.reason == wire::OUTCOME_REASON_OFFERED) {
    const bool missing = std::any_of(
        left.begin(), left.end(), [](const Amounts::value_type& entry) {
          return entry.second != 0;
        });

    if (missing || verdict.bounded) {
      verdict.reason = wire::OUTCOME_REASON_PARTIAL;
    }
  }

  return verdict;
}

} // namespace adapter {
} // namespace allocator {
