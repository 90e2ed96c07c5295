#include "brain/deciding/idle_sidecar_check.hpp"

namespace allocator {
namespace brain {

void IdleSidecarCheck::answered(bool all, bool gave, bool holdsBack)
{
  isAnswered = isAnswered || all;
  isFruitful = isFruitful || gave || holdsBack;
}


void IdleSidecarCheck::endInterval(const Cluster& cluster, int64_t nowMs)
{
  const bool toLook = isAnswered && !isFruitful && !cluster.offersPaused();

  if (isFruitful) {
    intervals_ = 0;
  } else if (toLook) {
    const Found found = look(cluster, nowMs);
    intervals_ = found == Found::NOBODY ? 0 : intervals_;
    intervals_ += found == Found::SOMEBODY ? 1 : 0;
  }

  isAnswered = isFruitful = false;
}


void IdleSidecarCheck::forgetSession()
{
  isAnswered = isFruitful = false;
  intervals_ = 0;
}


void IdleSidecarCheck::nextAgent()
{
  ++pair.agent;
  pair.framework = pair.role = 0;
  isWhole = true;
}


// Searches the agents in a circle, from where the last search stopped.
IdleSidecarCheck::Found IdleSidecarCheck::look(
    const Cluster& cluster,
    int64_t nowMs)
{
  const uint32_t end = cluster.agents.end();
  size_t work = 0;

  while (agentsWithout < end) {
    if (pair.agent >= end) {
      pair = Pair();
    }

    const Found found = work < cluster.options.sliceParts
        ? lookAtAgent(cluster, nowMs, &work)
        : Found::UNKNOWN;

    if (found == Found::SOMEBODY) {
      agentsWithout = 0;
      isWhole = false;
    }
    if (found != Found::NOBODY) {
      return found;
    }

    agentsWithout += isWhole ? 1 : 0;
    nextAgent();
  }

  agentsWithout = 0;
  return Found::NOBODY;
}


// Searches the agent from `pair` on, and leaves `pair` where the next search
// begins. Checks at least one pair, whatever the budget.
IdleSidecarCheck::Found IdleSidecarCheck::lookAtAgent(
    const Cluster& cluster,
    int64_t nowMs,
    size_t* work)
{
  const Agent* agent = cluster.agents.find(pair.agent);
  ++*work;

  if (admitAgent(cluster, pair.agent) != PASS) {
    return Found::NOBODY;
  }

  *work += agent->resources.size() / AMOUNTS_AS_ONE;
  if (!cluster.books.hasFree(*agent)) {
    return Found::NOBODY;
  }

  bool isFirst = true;

  for (; pair.framework < cluster.frameworks.end();
       ++pair.framework, pair.role = 0) {
    const Framework* framework = cluster.frameworks.find(pair.framework);
    ++*work;

    if (framework == nullptr) {
      continue;
    }

    for (auto role = framework->roles.lower_bound(pair.role);
         role != framework->roles.end();
         ++role) {
      pair.role = *role;

      if (!isFirst && *work >= cluster.options.sliceParts) {
        return Found::UNKNOWN;
      }

      isFirst = false;
      *work += 1 + agent->resources.size();
      const bool meets =
          admitFramework(cluster, pair.framework, pair.role) == PASS &&
          admitPair(cluster, pair) == PASS;

      if (!meets) {
        continue;
      }

      const Admission admission =
          applyQuotaAndFilters(cluster, pair, pool(cluster, pair), nowMs);
      *work += admission.work;

      if (admission.reason == wire::OUTCOME_REASON_OFFERED) {
        return Found::SOMEBODY;
      }
    }
  }

  return Found::NOBODY;
}

} // namespace brain {
} // namespace allocator {
