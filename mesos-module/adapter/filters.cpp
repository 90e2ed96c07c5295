#include "adapter/filters.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

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

  vector<Refusal>& refusals = filters[frameworkId][role][agentId];
  const int64_t expiresMs = nowMs + std::max(refuseMs - 1, intervalMs);

  // One that another contains and outlives says nothing: so a framework
  // that declines the same for ever does not make the list grow.
  refusals.erase(
      std::remove_if(
          refusals.begin(),
          refusals.end(),
          [&](const Refusal& old) {
            return old.expiresMs < nowMs ||
              (old.expiresMs <= expiresMs && refused.contains(old.refused));
          }),
      refusals.end());

  refusals.push_back(Refusal{refused, expiresMs});
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
      byAgent->second.begin(),
      byAgent->second.end(),
      [&](const Refusal& each) {
        return each.expiresMs >= nowMs && each.refused.contains(offer);
      });
}


void Filters::dropFramework(const FrameworkID& frameworkId)
{
  filters.erase(frameworkId);
}


void Filters::dropRole(const FrameworkID& frameworkId, const string& role)
{
  auto framework = filters.find(frameworkId);
  if (framework != filters.end()) {
    framework->second.erase(role);
  }
}


void Filters::dropAgent(const SlaveID& agentId)
{
  for (auto& framework : filters) {
    for (auto& role : framework.second) {
      role.second.erase(agentId);
    }
  }
}


void Filters::expire(int64_t nowMs)
{
  for (auto& framework : filters) {
    for (auto& role : framework.second) {
      ByAgent& agents = role.second;

      for (auto agent = agents.begin(); agent != agents.end();) {
        vector<Refusal>& refusals = agent->second;
        refusals.erase(
            std::remove_if(
                refusals.begin(),
                refusals.end(),
                [=](const Refusal& each) { return each.expiresMs < nowMs; }),
            refusals.end());

        agent = refusals.empty() ? agents.erase(agent) : std::next(agent);
      }
    }
  }
}


size_t Filters::size() const
{
  size_t count = 0;
  each([&](
      const FrameworkID&, const string&, const SlaveID&, const Refusal&) {
    ++count;
  });
  return count;
}


void Filters::each(
    const std::function<void(
        const FrameworkID&,
        const string&,
        const SlaveID&,
        const Refusal&)>& visit) const
{
  for (const auto& framework : filters) {
    for (const auto& role : framework.second) {
      for (const auto& agent : role.second) {
        for (const Refusal& refusal : agent.second) {
          visit(framework.first, role.first, agent.first, refusal);
        }
      }
    }
  }
}

} // namespace adapter {
} // namespace allocator {
