#include "adapter/maintenance.hpp"

#include <algorithm>

#include "adapter/gates.hpp"

using std::vector;

namespace allocator {
namespace adapter {

void Maintenance::set(
    const SlaveID& agentId,
    const Option<Unavailability>& unavailability)
{
  for (auto& entry : filters) {
    entry.second.erase(agentId);
  }

  schedules.erase(agentId);

  if (unavailability.isSome()) {
    schedules[agentId].unavailability = unavailability.get();
  }
}


void Maintenance::answer(
    const SlaveID& agentId,
    const FrameworkID& frameworkId,
    const Option<Status>& status,
    const Option<mesos::Filters>& given,
    int64_t nowMs)
{
  auto schedule = schedules.find(agentId);
  if (schedule == schedules.end()) {
    return;
  }

  // An answer to an inverse offer that is not out is an old one.
  if (schedule->second.outstanding.erase(frameworkId) > 0 && status.isSome()) {
    schedule->second.statuses[frameworkId] = status.get();
  }

  const int64_t refuseMs = given.isSome() ? refusalMs(given.get()) : 0;

  if (refuseMs > 0) {
    int64_t& expires = filters[frameworkId][agentId];
    expires = std::max(expires, nowMs + refuseMs);
  }
}


void Maintenance::forgetOutstanding(const FrameworkID& frameworkId)
{
  for (auto& entry : schedules) {
    entry.second.outstanding.erase(frameworkId);
  }
}


void Maintenance::forgetOutstanding(const SlaveID& agentId)
{
  auto schedule = schedules.find(agentId);
  if (schedule != schedules.end()) {
    schedule->second.outstanding.clear();
  }
}


void Maintenance::clearFilters(const FrameworkID& frameworkId)
{
  filters.erase(frameworkId);
}


void Maintenance::removeFramework(const FrameworkID& frameworkId)
{
  filters.erase(frameworkId);

  for (auto& entry : schedules) {
    entry.second.outstanding.erase(frameworkId);
    entry.second.statuses.erase(frameworkId);
  }
}


void Maintenance::removeAgent(const SlaveID& agentId)
{
  set(agentId, None());
}


bool Maintenance::filtered(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    int64_t nowMs) const
{
  auto framework = filters.find(frameworkId);
  if (framework == filters.end()) {
    return false;
  }

  auto expires = framework->second.find(agentId);
  return expires != framework->second.end() && expires->second > nowMs;
}


Maintenance::InverseOffers Maintenance::generate(
    const Cluster& state,
    const vector<SlaveID>& candidates,
    int64_t nowMs)
{
  InverseOffers result;

  if (schedules.empty()) {
    return result;
  }

  for (const SlaveID& agentId : candidates) {
    auto schedule = schedules.find(agentId);
    const Ledger::Agent* books = state.ledger.find(agentId);

    if (schedule == schedules.end() || books == nullptr ||
        admitAgent(state, agentId) != wire::OUTCOME_REASON_UNSPECIFIED) {
      continue;
    }

    for (const auto& held : books->held) {
      const FrameworkID& frameworkId = held.first;
      auto framework = state.frameworks.find(frameworkId);

      // An agent may name a framework that has not come back yet.
      if (framework == state.frameworks.end() || !framework->second.active ||
          schedule->second.outstanding.contains(frameworkId) ||
          filtered(frameworkId, agentId, nowMs)) {
        continue;
      }

      schedule->second.outstanding.insert(frameworkId);
      result[frameworkId][agentId] = mesos::UnavailableResources{
          Resources(), schedule->second.unavailability};
    }
  }

  return result;
}


Maintenance::Statuses Maintenance::statuses() const
{
  Statuses result;
  for (const auto& entry : schedules) {
    result[entry.first] = entry.second.statuses;
  }
  return result;
}

} // namespace adapter {
} // namespace allocator {
