#include "adapter/process.hpp"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"
#include "adapter/text.hpp"

using std::set;
using std::string;
using std::vector;

namespace allocator {
namespace adapter {

void AllocatorProcess::addFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& info,
    bool active,
    mesos::allocator::FrameworkOptions&& options)
{
  if (state.frameworks.contains(frameworkId)) {
    LOG(ERROR) << "Framework " << frameworkId << " was added twice";
    return;
  }

  // What it uses came, or comes, with the agents.
  Framework& framework = state.frameworks[frameworkId];
  describeFramework(info, &framework);
  builtin->subscribe({}, framework.roles);
  framework.active = active;
  framework.suppressed = std::move(options.suppressedRoles);
  framework.constraints = std::move(options.offerConstraintsFilter);

  wire::Event event;
  *event.mutable_add_framework() =
      toFramework(frameworkId, framework, &state.handles);
  const uint32_t handle = event.add_framework().framework();
  state.handles.frameworks.sent(handle, send(std::move(event)));
  updateExclusions(frameworkId);

  if (active) {
    triggerAll();
  }
}


void AllocatorProcess::removeFramework(const FrameworkID& frameworkId)
{
  // It frees offers that are still on their way to the master, too.
  state.ledger.removeFramework(frameworkId);
  state.filters.dropFramework(frameworkId);
  maintenance.removeFramework(frameworkId);

  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return;
  }

  builtin->subscribe(found->second.roles, {});
  state.frameworks.erase(found);

  wire::Event event;
  event.mutable_remove_framework()->set_framework(
      state.handles.frameworks.bind(frameworkId));
  const uint64_t batch = send(std::move(event));
  state.handles.frameworks.release(frameworkId, batch);
}


void AllocatorProcess::activateFramework(const FrameworkID& frameworkId)
{
  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return;
  }

  found->second.active = true;
  maintenance.forgetOutstanding(frameworkId);

  wire::Event event;
  event.mutable_activate_framework()->set_framework(
      state.handles.frameworks.bind(frameworkId));
  event.mutable_activate_framework()->set_active(true);
  send(std::move(event));
  triggerAll();
}


void AllocatorProcess::deactivateFramework(const FrameworkID& frameworkId)
{
  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return;
  }

  // Offers that are out come back one by one; only filters go.
  found->second.active = false;
  state.filters.dropFramework(frameworkId);
  maintenance.clearFilters(frameworkId);
  maintenance.forgetOutstanding(frameworkId);

  wire::Event event;
  event.mutable_activate_framework()->set_framework(
      state.handles.frameworks.bind(frameworkId));
  event.mutable_activate_framework()->set_active(false);
  send(std::move(event));
}


void AllocatorProcess::updateFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& info,
    mesos::allocator::FrameworkOptions&& options)
{
  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return;
  }

  Framework& framework = found->second;
  const set<string> oldRoles = framework.roles;
  const set<string> oldSuppressed = framework.suppressed;

  describeFramework(info, &framework);
  builtin->subscribe(oldRoles, framework.roles);
  framework.suppressed = std::move(options.suppressedRoles);
  framework.constraints = std::move(options.offerConstraintsFilter);

  for (const string& role : oldRoles) {
    if (framework.roles.count(role) == 0) {
      state.filters.dropRole(frameworkId, role);
      framework.excluded.erase(role);
    }
  }

  for (const string& role : oldSuppressed) {
    if (framework.suppressed.count(role) == 0) {
      state.filters.dropRole(frameworkId, role);
      maintenance.clearFilters(frameworkId);
    }
  }

  wire::Event event;
  *event.mutable_update_framework() =
      toFramework(frameworkId, framework, &state.handles);
  send(std::move(event));
  updateExclusions(frameworkId);
}


void AllocatorProcess::requestResources(
    const FrameworkID& frameworkId,
    const vector<mesos::Request>& requests)
{
  if (state.frameworks.contains(frameworkId)) {
    wire::Event event;
    *event.mutable_request() =
        toRequest(state.handles.frameworks.bind(frameworkId), requests);
    send(std::move(event));
  }
}


void AllocatorProcess::suppressOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return;
  }

  Framework& framework = found->second;
  wire::Event event;
  event.mutable_suppress()->set_framework(
      state.handles.frameworks.bind(frameworkId));

  for (const string& role : roles.empty() ? framework.roles : roles) {
    if (framework.roles.count(role) > 0) {
      framework.suppressed.insert(role);
      event.mutable_suppress()->add_roles(state.handles.roles.bind(role));
    }
  }

  // Without a role it would mean all of them.
  if (event.suppress().roles_size() > 0) {
    send(std::move(event));
  }
}


void AllocatorProcess::reviveOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  auto found = state.frameworks.find(frameworkId);
  if (found == state.frameworks.end()) {
    return;
  }

  Framework& framework = found->second;
  wire::Event event;
  event.mutable_revive()->set_framework(
      state.handles.frameworks.bind(frameworkId));
  maintenance.clearFilters(frameworkId);

  for (const string& role : roles.empty() ? framework.roles : roles) {
    framework.suppressed.erase(role);
    state.filters.dropRole(frameworkId, role);
    if (framework.roles.count(role) > 0) {
      event.mutable_revive()->add_roles(state.handles.roles.bind(role));
    }
  }

  if (event.revive().roles_size() > 0) {
    send(std::move(event));
  }

  triggerAll();
}


void AllocatorProcess::updateQuota(
    const string& role,
    const mesos::Quota& quota)
{
  if (quota == mesos::Quota()) {
    state.quotas.erase(role);
  } else {
    state.quotas[role] = quota;
  }

  builtin->setQuota(role, quota);

  wire::Event event;
  *event.mutable_quota() = toQuota(role, quota);
  send(std::move(event));
}


void AllocatorProcess::updateWeights(const vector<mesos::WeightInfo>& weights)
{
  wire::Event event;

  for (const mesos::WeightInfo& info : weights) {
    state.weights[info.role()] = info.weight();
    wire::Weight* weight = event.mutable_weights()->add_weights();
    weight->set_role(toText(info.role()));
    weight->set_weight(info.weight());
  }

  if (!weights.empty()) {
    send(std::move(event));
  }
}


void AllocatorProcess::evaluate(
    const FrameworkID& frameworkId,
    Framework* framework,
    const SlaveID& agentId,
    const Agent& agent,
    wire::Exclusions* changes)
{
  for (const string& role : framework->roles) {
    const bool now = framework->constraints.isAgentExcluded(role, agent.info);
    if (!now && framework->excluded.empty()) {
      continue;
    }

    auto excluded = framework->excluded.find(role);
    const bool before = excluded != framework->excluded.end() &&
        excluded->second.contains(agentId);

    if (now == before) {
      continue;
    }

    if (now) {
      framework->excluded[role].insert(agentId);
    } else {
      excluded->second.erase(agentId);
    }

    changes->add_framework(state.handles.frameworks.bind(frameworkId));
    changes->add_role(state.handles.roles.bind(role));
    changes->add_agent(state.handles.agents.bind(agentId));
    changes->add_excluded(now);
  }
}


void AllocatorProcess::updateExclusions(const FrameworkID& frameworkId)
{
  wire::Event event;
  Framework& framework = state.frameworks.at(frameworkId);

  for (const auto& entry : state.agents) {
    evaluate(
        frameworkId,
        &framework,
        entry.first,
        entry.second,
        event.mutable_exclusions());

    // A message must not become too large for the sidecar.
    if (event.exclusions().framework_size() >= Pending::ROWS_MAX) {
      send(std::move(event));
      event = wire::Event();
    }
  }

  if (event.exclusions().framework_size() > 0) {
    send(std::move(event));
  }
}


void AllocatorProcess::updateExclusions(const SlaveID& agentId)
{
  wire::Event event;
  const Agent& agent = state.agents.at(agentId);

  for (auto& entry : state.frameworks) {
    evaluate(
        entry.first, &entry.second, agentId, agent, event.mutable_exclusions());
  }

  if (event.exclusions().framework_size() > 0) {
    send(std::move(event));
  }
}

} // namespace adapter {
} // namespace allocator {
