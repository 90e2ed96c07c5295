#include "adapter/process.hpp"

#include <iterator>
#include <map>
#include <utility>

#include <process/http.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"

using std::set;
using std::string;
using std::vector;

namespace allocator {
namespace adapter {

void AllocatorProcess::addFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& info,
    bool active,
    mesos::allocator::FrameworkOptions&& settings)
{
  guard([&]() {
    brain::AddFramework event;
    event.framework = frameworkId.value();
    event.active = active;
    describe(info, settings.suppressedRoles, &event);

    const string wrong = step(event);
    if (wrong.empty()) {
      subscribe(frameworkId, info, std::move(settings));
    }
    return wrong;
  });
}


void AllocatorProcess::updateFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& info,
    mesos::allocator::FrameworkOptions&& settings)
{
  guard([&]() {
    brain::UpdateFramework event;
    event.framework = frameworkId.value();
    describe(info, settings.suppressedRoles, &event);

    const string wrong = step(event);
    if (wrong.empty()) {
      subscribe(frameworkId, info, std::move(settings));
    }
    return wrong;
  });
}


// What a framework that was added, or changes its roles, is known by here.
void AllocatorProcess::subscribe(
    const FrameworkID& frameworkId,
    const FrameworkInfo& info,
    mesos::allocator::FrameworkOptions&& settings)
{
  Framework& framework = frameworks[frameworkId];
  const set<string> roles = rolesOf(frameworkId);

  if (builtin != nullptr) {
    builtin->subscribe(framework.roles, roles);
  }

  // A framework that changes its name is shown by the first one.
  if (framework.metrics.empty()) {
    framework.metrics = "master/frameworks/" +
        process::http::encode(info.name()) + "/" + frameworkId.value() + "/";
  }

  framework.roles = roles;
  framework.constraints = std::move(settings.offerConstraintsFilter);
  showSuppressed(frameworkId);
  updateExclusions(frameworkId);
}


// Those that the brain took.
set<string> AllocatorProcess::rolesOf(const FrameworkID& frameworkId) const
{
  const brain::Cluster& cluster = brain.cluster();
  const brain::Framework* record = cluster.frameworks.find(
      cluster.frameworkHandles.find(frameworkId.value()));

  set<string> roles;
  if (record != nullptr) {
    for (uint32_t role : record->roles) {
      roles.insert(cluster.roles.path(role));
    }
  }
  return roles;
}


void AllocatorProcess::showSuppressed(const FrameworkID& frameworkId)
{
  const brain::Cluster& cluster = brain.cluster();
  const brain::Framework* record = cluster.frameworks.find(
      cluster.frameworkHandles.find(frameworkId.value()));
  auto found = frameworks.find(frameworkId);

  if (builtin == nullptr || !options.publishPerFrameworkMetrics ||
      found == frameworks.end()) {
    return;
  }

  std::map<string, bool> suppressed;
  if (record != nullptr) {
    for (uint32_t role : record->roles) {
      suppressed[cluster.roles.path(role)] = record->suppressed.count(role) > 0;
    }
  }

  builtin->setSuppressed(found->second.metrics, suppressed);
}


void AllocatorProcess::removeFramework(const FrameworkID& frameworkId)
{
  guard([&]() {
    auto found = frameworks.find(frameworkId);
    if (found != frameworks.end()) {
      if (builtin != nullptr) {
        builtin->subscribe(found->second.roles, {});
        builtin->setSuppressed(found->second.metrics, {});
      }
      frameworks.erase(found);
      excluding.erase(frameworkId);
    }
    return step(brain::RemoveFramework{frameworkId.value()});
  });
}


void AllocatorProcess::activateFramework(const FrameworkID& frameworkId)
{
  guard([&]() {
    return step(brain::ActivateFramework{frameworkId.value(), true});
  });
}


void AllocatorProcess::deactivateFramework(const FrameworkID& frameworkId)
{
  guard([&]() {
    return step(brain::ActivateFramework{frameworkId.value(), false});
  });
}


void AllocatorProcess::requestResources(
    const FrameworkID& frameworkId,
    const vector<mesos::Request>& requests)
{
  guard([&]() {
    return step(brain::Request{frameworkId.value(), toRequest(requests)});
  });
}


void AllocatorProcess::suppressOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  guard([&]() {
    const string wrong = step(brain::Suppress{frameworkId.value(), roles});
    showSuppressed(frameworkId);
    return wrong;
  });
}


void AllocatorProcess::reviveOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  guard([&]() {
    const string wrong = step(brain::Revive{frameworkId.value(), roles});
    showSuppressed(frameworkId);
    return wrong;
  });
}


void AllocatorProcess::updateQuota(
    const string& role,
    const mesos::Quota& quota)
{
  guard([&]() {
    if (builtin != nullptr) {
      builtin->setQuota(role, quota);
    }
    return step(toQuota(role, quota));
  });
}


void AllocatorProcess::updateWeights(const vector<mesos::WeightInfo>& weights)
{
  guard([&]() {
    brain::SetWeights event;
    for (const mesos::WeightInfo& info : weights) {
      event.weights.emplace_back(info.role(), info.weight());
    }
    return step(event);
  });
}


// Of so many roles that the cost is bounded; the brain hears of the others.
void AllocatorProcess::evaluate(
    const FrameworkID& frameworkId,
    const Framework& framework,
    const SlaveID& agentId,
    const Agent& agent,
    brain::Exclude* event)
{
  size_t left = brain::constrainedRoles(agents.size());

  for (const string& role : framework.roles) {
    if (left-- == 0) {
      break;
    }

    const bool now = framework.constraints.isAgentExcluded(role, agent.info);
    if (now) {
      excluding.insert(frameworkId);
    }

    // Mostly nobody is excluded, and the brain need not hear of it.
    if (excluding.count(frameworkId) > 0) {
      event->rows.push_back(
          brain::Exclude::Row{frameworkId.value(), role, agentId.value(), now});
    }
  }

  // So many names take little memory at a time.
  if (event->rows.size() >= brain::EventCoalescer::ROWS_MAX) {
    step(*event);
    event->rows.clear();
  }
}


void AllocatorProcess::updateExclusions(const FrameworkID& frameworkId)
{
  brain::Exclude event;
  const Framework& framework = frameworks.at(frameworkId);

  for (const auto& entry : agents) {
    evaluate(frameworkId, framework, entry.first, entry.second, &event);
  }

  if (!event.rows.empty()) {
    step(event);
  }

  const size_t seen = brain::constrainedRoles(agents.size());
  if (excluding.count(frameworkId) > 0 && framework.roles.size() > seen) {
    brain::IgnoreConstraints ignore;
    ignore.framework = frameworkId.value();
    ignore.roles.assign(
        std::next(framework.roles.begin(), seen), framework.roles.end());
    step(ignore);
  }
}


void AllocatorProcess::updateExclusions(const SlaveID& agentId)
{
  brain::Exclude event;
  const auto agent = agents.find(agentId);

  for (const FrameworkID& each : excluding) {
    evaluate(each, frameworks.at(each), agentId, agent->second, &event);
  }

  if (!event.rows.empty()) {
    step(event);
  }
}


bool AllocatorProcess::isExcluded(const brain::Offer& offer)
{
  const brain::Cluster& cluster = brain.cluster();
  const FrameworkID frameworkId = frameworkIdOf(offer.framework);
  const SlaveID agentId = agentIdOf(offer.agent);

  const auto framework = frameworks.find(frameworkId);
  const auto agent = agents.find(agentId);
  if (framework == frameworks.end() || agent == agents.end()) {
    return false;
  }

  const string& role = cluster.roles.path(offer.role);
  const set<string>& roles = framework->second.roles;
  const size_t seen = brain::constrainedRoles(agents.size());

  return framework->second.constraints.isAgentExcluded(
             role, agent->second.info) &&
      (roles.size() <= seen ||
       std::distance(roles.begin(), roles.find(role)) <
           static_cast<ptrdiff_t>(seen));
}

} // namespace adapter {
} // namespace allocator {
