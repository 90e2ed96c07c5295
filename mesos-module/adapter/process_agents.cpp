#include "adapter/process.hpp"

#include <utility>

#include <glog/logging.h>

#include <mesos/attributes.hpp>

#include "adapter/convert.hpp"
#include "adapter/text.hpp"

using std::string;
using std::vector;

using process::Future;

namespace allocator {
namespace adapter {

void AllocatorProcess::addSlave(
    const SlaveID& agentId,
    const SlaveInfo& info,
    const vector<SlaveInfo::Capability>& capabilities,
    const Option<Unavailability>& unavailability,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  if (state.agents.contains(agentId)) {
    LOG(ERROR) << "Agent " << agentId << " was added twice";
    return;
  }

  Agent& agent = state.agents[agentId];
  describeAgent(info, capabilities, &agent);
  agent.unavailability = unavailability;

  state.ledger.addAgent(agentId, total);
  maintenance.set(agentId, unavailability);

  wire::Event event;
  *event.mutable_add_agent() = toAgent(agentId, agent, total, &state.handles);
  const uint32_t handle = event.add_agent().agent();
  state.handles.agents.sent(handle, send(std::move(event)));
  updateExclusions(agentId);

  for (const auto& entry : used) {
    state.ledger.hold(entry.first, agentId, entry.second);
    sendHold(entry.first, agentId, entry.second);
  }

  if (state.recovering && state.agents.size() >= expectedAgents) {
    endRecovery();
  }

  trigger(agentId);
}


void AllocatorProcess::removeSlave(const SlaveID& agentId)
{
  if (state.agents.erase(agentId) == 0) {
    return;
  }

  state.ledger.removeAgent(agentId);
  state.filters.dropAgent(agentId);
  maintenance.removeAgent(agentId);

  for (auto& framework : state.frameworks) {
    for (auto& role : framework.second.excluded) {
      role.second.erase(agentId);
    }
  }

  wire::Event event;
  event.mutable_remove_agent()->set_agent(state.handles.agents.bind(agentId));
  const uint64_t batch = send(std::move(event));
  state.handles.agents.release(agentId, batch);
}


void AllocatorProcess::updateSlave(
    const SlaveID& agentId,
    const SlaveInfo& info,
    const Option<Resources>& total,
    const Option<vector<SlaveInfo::Capability>>& capabilities)
{
  auto found = state.agents.find(agentId);
  const Ledger::Agent* books = state.ledger.find(agentId);

  if (found == state.agents.end() || books == nullptr) {
    return;
  }

  Agent& agent = found->second;
  const bool newAttributes = mesos::Attributes(agent.info.attributes()) !=
      mesos::Attributes(info.attributes());
  const bool newInfo =
      agent.info.SerializePartialAsString() != info.SerializePartialAsString();
  const bool newTotal = total.isSome() && total.get() != books->total;

  describeAgent(info, capabilities, &agent);

  if (newTotal) {
    state.ledger.setTotal(agentId, total.get());
  }

  if (newAttributes) {
    state.filters.dropAgent(agentId);
  }

  if (!newInfo && !newTotal && capabilities.isNone()) {
    return;
  }

  wire::Event event;
  *event.mutable_update_agent() =
      toUpdateAgent(agentId, agent, books->total, &state.handles);
  send(std::move(event));

  if (newInfo) {
    updateExclusions(agentId);
  }

  trigger(agentId);
}


void AllocatorProcess::addResourceProvider(
    const SlaveID& agentId,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  auto found = state.agents.find(agentId);
  const Ledger::Agent* books = state.ledger.find(agentId);

  if (found == state.agents.end() || books == nullptr) {
    return;
  }

  if (!total.empty()) {
    state.ledger.setTotal(agentId, books->total + total);
    wire::Event event;
    *event.mutable_update_agent() =
        toUpdateAgent(agentId, found->second, books->total, &state.handles);
    send(std::move(event));
  }

  for (const auto& entry : used) {
    state.ledger.hold(entry.first, agentId, entry.second);
    sendHold(entry.first, agentId, entry.second);
  }
}


void AllocatorProcess::activateSlave(const SlaveID& agentId)
{
  auto found = state.agents.find(agentId);
  if (found != state.agents.end()) {
    found->second.active = true;
    maintenance.forgetOutstanding(agentId);

    wire::Event event;
    event.mutable_activate_agent()->set_agent(
        state.handles.agents.bind(agentId));
    event.mutable_activate_agent()->set_active(true);
    send(std::move(event));
  }
}


void AllocatorProcess::deactivateSlave(const SlaveID& agentId)
{
  auto found = state.agents.find(agentId);
  if (found != state.agents.end()) {
    // The master gives the offers back one by one.
    found->second.active = false;
    maintenance.forgetOutstanding(agentId);

    wire::Event event;
    event.mutable_activate_agent()->set_agent(
        state.handles.agents.bind(agentId));
    event.mutable_activate_agent()->set_active(false);
    send(std::move(event));
  }
}


void AllocatorProcess::updateWhitelist(const Option<hashset<string>>& whitelist)
{
  state.whitelist = whitelist;

  wire::Event event;
  event.mutable_whitelist()->set_restricted(whitelist.isSome());
  if (whitelist.isSome()) {
    for (const string& hostname : whitelist.get()) {
      event.mutable_whitelist()->add_hostnames(toText(hostname));
    }
  }
  send(std::move(event));
}


void AllocatorProcess::updateUnavailability(
    const SlaveID& agentId,
    const Option<Unavailability>& unavailability)
{
  auto found = state.agents.find(agentId);
  if (found == state.agents.end()) {
    return;
  }

  found->second.unavailability = unavailability;
  maintenance.set(agentId, unavailability);

  wire::Event event;
  event.mutable_unavailability()->set_agent(state.handles.agents.bind(agentId));
  if (unavailability.isSome()) {
    *event.mutable_unavailability()->mutable_unavailability() =
        toUnavailability(unavailability.get());
  }
  send(std::move(event));
  trigger(agentId);
}


void AllocatorProcess::updateInverseOffer(
    const SlaveID& agentId,
    const FrameworkID& frameworkId,
    const Option<mesos::allocator::InverseOfferStatus>& status,
    const Option<mesos::Filters>& filters)
{
  if (!state.agents.contains(agentId) ||
      !state.frameworks.contains(frameworkId)) {
    return;
  }

  maintenance.answer(agentId, frameworkId, status, filters, nowMs());

  wire::Event event;
  wire::InverseOfferUpdate* update = event.mutable_inverse_offer();
  update->set_framework(state.handles.frameworks.bind(frameworkId));
  update->set_agent(state.handles.agents.bind(agentId));
  update->set_refuse_ms(filters.isSome() ? refusalMs(filters.get()) : -1);
  update->set_status(wire::InverseOfferUpdate::STATUS_UNKNOWN);

  if (status.isSome()) {
    update->set_status(
        status->status() == mesos::allocator::InverseOfferStatus::ACCEPT
            ? wire::InverseOfferUpdate::STATUS_ACCEPT
            : wire::InverseOfferUpdate::STATUS_DECLINE);
  }

  send(std::move(event));
}


Future<Maintenance::Statuses> AllocatorProcess::getInverseOfferStatuses()
{
  return maintenance.statuses();
}

} // namespace adapter {
} // namespace allocator {
