#include "brain/deciding/maintenance.hpp"

#include <algorithm>

#include "brain/deciding/gates.hpp"

namespace allocator {
namespace brain {

void Maintenance::set(uint32_t agent, bool scheduled)
{
  for (auto filter = filters.begin(); filter != filters.end();) {
    filter = filter->first.second == agent ? filters.erase(filter)
                                           : std::next(filter);
  }

  schedules.erase(agent);
  if (scheduled) {
    schedules[agent];
  }
}


void Maintenance::answer(
    uint32_t agent,
    uint32_t framework,
    const Answer* answer,
    int64_t refuseMs,
    int64_t nowMs)
{
  auto schedule = schedules.find(agent);
  if (schedule == schedules.end()) {
    return;
  }

  // Ignore an answer without an outstanding inverse offer: it is outdated.
  if (schedule->second.outstanding.erase(framework) > 0 && answer != nullptr) {
    schedule->second.answers[framework] = *answer;
  }

  if (refuseMs > 0) {
    int64_t& expires = filters[{framework, agent}];
    expires = std::max(expires, nowMs + refuseMs);
  }
}


void Maintenance::forgetOutstandingOfFramework(uint32_t framework)
{
  for (auto& entry : schedules) {
    entry.second.outstanding.erase(framework);
  }
}


void Maintenance::forgetOutstandingOfAgent(uint32_t agent)
{
  auto schedule = schedules.find(agent);
  if (schedule != schedules.end()) {
    schedule->second.outstanding.clear();
  }
}


void Maintenance::clearFilters(uint32_t framework)
{
  filters.erase(
      filters.lower_bound({framework, 0}),
      filters.upper_bound({framework, UINT32_MAX}));
}


void Maintenance::removeFramework(uint32_t framework)
{
  clearFilters(framework);

  for (auto& entry : schedules) {
    entry.second.outstanding.erase(framework);
    entry.second.answers.erase(framework);
  }
}


bool Maintenance::ask(
    const Cluster& cluster,
    uint32_t framework,
    uint32_t agent,
    Schedule* schedule,
    int64_t nowMs)
{
  // An agent may name a framework that has not reregistered yet.
  const Framework* known = cluster.frameworks.find(framework);
  auto filter = filters.find({framework, agent});

  return known != nullptr && known->active &&
      (filter == filters.end() || filter->second <= nowMs) &&
      schedule->outstanding.insert(framework).second;
}


std::vector<InverseOffer> Maintenance::generate(
    const Cluster& cluster,
    bool all,
    const std::vector<uint32_t>& agents,
    int64_t nowMs)
{
  std::vector<InverseOffer> result;

  for (auto& entry : schedules) {
    const uint32_t number = entry.first;
    const bool asked =
        all || std::find(agents.begin(), agents.end(), number) != agents.end();

    if (!asked ||
        admitAgent(cluster, number) != wire::OUTCOME_REASON_UNSPECIFIED) {
      continue;
    }

    const Agent& agent = *cluster.agents.find(number);
    const int64_t startMs = agent.unavailability.startMs;

    if (startMs > nowMs && startMs - nowMs > cluster.options.inverseWithinMs) {
      continue;
    }

    for (const Allocation& allocation : agent.allocations) {
      if (ask(cluster, allocation.framework, number, &entry.second, nowMs)) {
        result.push_back(InverseOffer{allocation.framework, number});
      }
    }
  }

  return result;
}


std::vector<InverseOffer> Maintenance::reclaim(
    const Cluster& cluster,
    const std::vector<InverseOffer>& wanted,
    int64_t nowMs)
{
  std::vector<InverseOffer> result;

  for (const InverseOffer& each : wanted) {
    auto schedule = schedules.find(each.agent);

    if (schedule == schedules.end() ||
        admitAgent(cluster, each.agent) != wire::OUTCOME_REASON_UNSPECIFIED) {
      continue;
    }

    const std::vector<Allocation>& held =
        cluster.agents.find(each.agent)->allocations;
    const bool holds = std::any_of(
        held.begin(), held.end(), [&](const Allocation& allocation) {
          return allocation.framework == each.framework;
        });

    if (holds &&
        ask(cluster, each.framework, each.agent, &schedule->second, nowMs)) {
      result.push_back(each);
    }
  }

  return result;
}


std::map<uint32_t, Maintenance::Answers> Maintenance::answers() const
{
  std::map<uint32_t, Answers> result;
  for (const auto& entry : schedules) {
    result[entry.first] = entry.second.answers;
  }
  return result;
}

} // namespace brain {
} // namespace allocator {
