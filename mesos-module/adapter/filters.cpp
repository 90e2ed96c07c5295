#include "adapter/filters.hpp"

#include <algorithm>
#include <cmath>

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

int64_t refusalMs(const mesos::Filters& filters)
{
  constexpr double YEAR_S = 365.0 * 24 * 3600;
  const double asked = filters.refuse_seconds();

  if (std::isnan(asked) || asked < 0) {
    return std::llround(mesos::Filters().refuse_seconds() * 1000);
  }

  // Less than a millisecond is a refusal none the less.
  return static_cast<int64_t>(std::ceil(std::min(asked, YEAR_S) * 1000));
}


void Filters::add(
    const FrameworkID& frameworkId,
    const string& role,
    const SlaveID& agentId,
    const Resources& refused,
    int64_t refuseMs,
    int64_t nowMs)
{
  if (refuseMs <= 0 || refused.empty()) {
    return;
  }

  ByAgent& agents = filters[frameworkId][role];
  auto place = agents.emplace(agentId, nullptr).first;

  if (place->second == nullptr) {
    place->second = std::make_shared<List>(List{{}, &agents, &place->first});
  }

  const std::shared_ptr<List>& list = place->second;
  const int64_t expiresMs = nowMs + std::max(refuseMs - 1, intervalMs);

  // One that another contains and outlives says nothing: so a framework
  // that declines the same for ever does not make the list grow.
  remove(list.get(), [&](const Refusal& old) {
    return old.expiresMs < nowMs ||
        (old.expiresMs <= expiresMs && refused.contains(old.refused));
  });

  list->refusals.push_back(Refusal{refused, expiresMs});
  ++count;
  expiries.push(Expiry{expiresMs, list});

  // It must not grow, either.
  if (expiries.size() > 2 * count + 1024) {
    rebuildExpiries();
  }
}


template <typename Predicate>
void Filters::remove(List* list, const Predicate& predicate)
{
  vector<Refusal>& refusals = list->refusals;
  const size_t before = refusals.size();

  refusals.erase(
      std::remove_if(refusals.begin(), refusals.end(), predicate),
      refusals.end());
  count -= before - refusals.size();
}


void Filters::drop(const ByAgent& agents)
{
  for (const auto& agent : agents) {
    count -= agent.second->refusals.size();
  }
}


void Filters::rebuildExpiries()
{
  vector<Expiry> entries;
  entries.reserve(count);

  for (const auto& framework : filters) {
    for (const auto& role : framework.second) {
      for (const auto& agent : role.second) {
        for (const Refusal& refusal : agent.second->refusals) {
          entries.push_back(Expiry{refusal.expiresMs, agent.second});
        }
      }
    }
  }

  expiries = Expiries(std::greater<Expiry>(), std::move(entries));
}


bool Filters::covers(
    const FrameworkID& frameworkId,
    const string& role,
    const SlaveID& agentId,
    const Resources& offer,
    int64_t nowMs) const
{
  auto framework = filters.find(frameworkId);
  if (framework == filters.end()) {
    return false;
  }

  auto byRole = framework->second.find(role);
  if (byRole == framework->second.end()) {
    return false;
  }

  auto byAgent = byRole->second.find(agentId);
  if (byAgent == byRole->second.end()) {
    return false;
  }

  return std::any_of(
      byAgent->second->refusals.begin(),
      byAgent->second->refusals.end(),
      [&](const Refusal& each) {
        return each.expiresMs >= nowMs && each.refused.contains(offer);
      });
}


void Filters::dropFramework(const FrameworkID& frameworkId)
{
  auto framework = filters.find(frameworkId);
  if (framework != filters.end()) {
    for (const auto& role : framework->second) {
      drop(role.second);
    }
    filters.erase(framework);
  }
}


void Filters::dropRole(const FrameworkID& frameworkId, const string& role)
{
  auto framework = filters.find(frameworkId);
  if (framework == filters.end()) {
    return;
  }

  auto byRole = framework->second.find(role);
  if (byRole != framework->second.end()) {
    drop(byRole->second);
    framework->second.erase(byRole);
  }
}


void Filters::dropAgent(const SlaveID& agentId)
{
  for (auto& framework : filters) {
    for (auto& role : framework.second) {
      auto agent = role.second.find(agentId);
      if (agent != role.second.end()) {
        count -= agent->second->refusals.size();
        role.second.erase(agent);
      }
    }
  }
}


size_t Filters::countOf(const string& role) const
{
  size_t result = 0;

  for (const auto& framework : filters) {
    auto byRole = framework.second.find(role);

    if (byRole != framework.second.end()) {
      for (const auto& agent : byRole->second) {
        result += agent.second->refusals.size();
      }
    }
  }

  return result;
}


void Filters::expire(int64_t nowMs)
{
  while (!expiries.empty() && expiries.top().ms < nowMs) {
    const std::shared_ptr<List> list = expiries.top().list.lock();
    expiries.pop();

    if (list == nullptr) {
      continue;
    }

    remove(list.get(), [=](const Refusal& each) {
      return each.expiresMs < nowMs;
    });

    if (list->refusals.empty()) {
      // A copy, for the key goes with the entry.
      const SlaveID agentId = *list->agentId;
      list->agents->erase(agentId);
    }
  }
}


void Filters::each(const std::function<void(
                       const FrameworkID&,
                       const string&,
                       const SlaveID&,
                       const Refusal&)>& visit) const
{
  for (const auto& framework : filters) {
    for (const auto& role : framework.second) {
      for (const auto& agent : role.second) {
        for (const Refusal& refusal : agent.second->refusals) {
          visit(framework.first, role.first, agent.first, refusal);
        }
      }
    }
  }
}

} // namespace adapter {
} // namespace allocator {
