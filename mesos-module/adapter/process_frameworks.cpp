#include "adapter/process.hpp"

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


// Records an added or updated framework.
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

  // A renamed framework keeps the name in its metrics.
  if (framework.metrics.empty()) {
    framework.metrics = "master/frameworks/" +
        process::http::encode(info.name()) + "/" + frameworkId.value() + "/";
  }

  framework.roles = roles;
  framework.constraints = std::move(settings.offerConstraintsFilter);
  showSuppressed(frameworkId, {});
  updateExclusions(frameworkId);
}


// The roles that the brain accepted.
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


// Publishes which of these roles are suppressed (empty: all roles). Updates
// only the roles that a call names, because a framework with many roles may
// often call for a single one.
void AllocatorProcess::showSuppressed(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  auto found = frameworks.find(frameworkId);

  if (builtin == nullptr || !options.publishPerFrameworkMetrics ||
      found == frameworks.end()) {
    return;
  }

  const Framework& framework = found->second;
  if (roles.empty()) {
    builtin->setSuppressed(
        framework.metrics, suppressedOf(frameworkId, framework.roles));
  } else {
    builtin->updateSuppressed(
        framework.metrics, suppressedOf(frameworkId, roles));
  }
}


// Whether each of these roles is suppressed. Leaves out roles that the
// framework does not have.
std::map<string, bool> AllocatorProcess::suppressedOf(
    const FrameworkID& frameworkId,
    const set<string>& roles) const
{
  const brain::Cluster& cluster = brain.cluster();
  const brain::Framework* record = cluster.frameworks.find(
      cluster.frameworkHandles.find(frameworkId.value()));

  std::map<string, bool> result;
  for (const string& path : roles) {
    const uint32_t role = cluster.roles.find(path);
    if (record != nullptr && record->roles.count(role) > 0) {
      result[path] = record->suppressed.count(role) > 0;
    }
  }
  return result;
}


void AllocatorProcess::removeFramework(const FrameworkID& frameworkId)
{
  guard([&]() {
    auto found = frameworks.find(frameworkId);
    if (found != frameworks.end()) {
      if (builtin != nullptr) {
        builtin->subscribe(found->second.roles, {});
        builtin->complete(
            found->second.metrics, options.maxCompletedFrameworks);
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
    showSuppressed(frameworkId, roles);
    return wrong;
  });
}


void AllocatorProcess::reviveOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  guard([&]() {
    const string wrong = step(brain::Revive{frameworkId.value(), roles});
    showSuppressed(frameworkId, roles);
    return wrong;
  });
}


void AllocatorProcess::updateQuota(
    const string& role,
    const mesos::Quota& quota)
{
  guard([&]() {
    const string wrong = step(toQuota(role, quota));
    if (builtin != nullptr) {
      builtin->setQuota(role, quota);
    }
    return wrong;
  });
}


void AllocatorProcess::updateWeights(const vector<mesos::WeightInfo>& weights)
{
  guard([&]() {
    brain::SetWeights event;
    for (const mesos::WeightInfo& info : weights) {
      event.weights.emplace_back(info.role(), info.weight());
      if (builtin != nullptr) {
        builtin->setWeight(info.role(), info.weight());
      }
    }
    return step(event);
  });
}

} // namespace adapter {
} // namespace allocator {
