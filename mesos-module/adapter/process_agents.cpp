#include "adapter/process.hpp"

#include <algorithm>
#include <utility>

#include <mesos/attributes.hpp>

#include "adapter/attempt.hpp"
#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"

#include "brain/user_input/bounds.hpp"
#include "brain/user_input/text.hpp"

using std::string;
using std::vector;

using process::Failure;
using process::Future;

namespace allocator {
namespace adapter {

namespace {

vector<string> sortedAttributes(const AgentInfo& info)
{
  vector<string> result;
  for (const mesos::Attribute& attribute : info.attributes()) {
    result.push_back(attribute.SerializePartialAsString());
  }
  std::sort(result.begin(), result.end());
  return result;
}


// Compares attributes. Mesos's comparison takes quadratic time, so large sets
// are compared as texts, which may differ for equal values (such as ranges in
// another order).
bool attributesDiffer(const AgentInfo& before, const AgentInfo& now)
{
  const size_t size = size_t(before.attributes_size());
  if (size != size_t(now.attributes_size())) {
    return true;
  }

  return size > brain::ATTRIBUTES_MAX
      ? sortedAttributes(before) != sortedAttributes(now)
      : mesos::Attributes(before.attributes()) !=
          mesos::Attributes(now.attributes());
}


vector<brain::RoleParts> partsOf(const vector<brain::Use>& used)
{
  vector<brain::RoleParts> result;
  for (const brain::Use& each : used) {
    result.push_back(brain::RoleParts{each.role, each.parts});
  }
  return result;
}

} // namespace {


vector<brain::Use> AllocatorProcess::toUses(
    const hashmap<FrameworkID, Resources>& used)
{
  vector<brain::Use> result;
  for (const auto& entry : used) {
    for (brain::RoleParts& each : objects.toRoleParts(entry.second)) {
      result.push_back(
          brain::Use{entry.first.value(), each.role, std::move(each.parts)});
    }
  }
  return result;
}


// Publishes what roles consume on the agent: current reservations, and
// resources in use when the agent was added.
void AllocatorProcess::showConsumed(
    const SlaveID& agentId,
    const vector<brain::RoleParts>& inUse)
{
  if (builtin != nullptr) {
    builtin->consumption.updateReserved(agentId.value());
    builtin->consumption.use(agentId.value(), inUse, 1);
  }
}


void AllocatorProcess::addSlave(
    const SlaveID& agentId,
    SlaveInfo info,
    vector<SlaveInfo::Capability> capabilities,
    const Option<Unavailability>& unavailability,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  guard([&]() {
    brain::AddAgent event;
    event.agent = agentId.value();
    event.info = toAgent(info, capabilities);
    event.unavailability = toUnavailability(unavailability);
    event.total = objects.toParts(total);
    event.used = toUses(used);
    const vector<brain::RoleParts> inUse = partsOf(event.used);

    const string wrong = step(std::move(event));
    if (wrong.empty()) {
      showConsumed(agentId, inUse);
      Agent& agent = agents[agentId];
      agent.info = std::move(info);
      agent.capabilities = std::move(capabilities);
      agent.unavailability = unavailability;
      updateExclusions(agentId);
    }
    return wrong;
  });
}


void AllocatorProcess::removeSlave(const SlaveID& agentId)
{
  guard([&]() {
    agents.erase(agentId);
    if (builtin != nullptr) {
      builtin->consumption.remove(agentId.value());
    }
    return step(brain::RemoveAgent{agentId.value()});
  });
}


void AllocatorProcess::updateSlave(
    const SlaveID& agentId,
    const SlaveInfo& info,
    const Option<Resources>& total,
    const Option<vector<SlaveInfo::Capability>>& capabilities)
{
  guard([&]() -> string {
    auto found = agents.find(agentId);
    if (found == agents.end()) {
      return "The agent is not known";
    }

    Agent& agent = found->second;
    const bool newInfo = agent.info.SerializePartialAsString() !=
        info.SerializePartialAsString();

    brain::UpdateAgent event;
    event.agent = agentId.value();
    event.newInfo = newInfo || capabilities.isSome();
    event.newAttributes = newInfo && attributesDiffer(agent.info, info);
    event.hasTotal = total.isSome();
    event.total =
        total.isSome() ? objects.toParts(total.get()) : brain::Parts();

    agent.info = info;
    if (capabilities.isSome()) {
      agent.capabilities = capabilities.get();
    }
    event.info = toAgent(agent.info, agent.capabilities);

    const string wrong = step(event);
    if (event.hasTotal) {
      showConsumed(agentId);
    }
    if (newInfo) {
      updateExclusions(agentId);
    }
    return wrong;
  });
}


void AllocatorProcess::addResourceProvider(
    const SlaveID& agentId,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  guard([&]() {
    brain::AddProvider event;
    event.agent = agentId.value();
    event.total = objects.toParts(total);
    event.used = toUses(used);
    const string wrong = step(event);
    if (wrong.empty()) {
      showConsumed(agentId, partsOf(event.used));
    }
    return wrong;
  });
}


void AllocatorProcess::activateSlave(const SlaveID& agentId)
{
  guard([&]() { return step(brain::ActivateAgent{agentId.value(), true}); });
}


void AllocatorProcess::deactivateSlave(const SlaveID& agentId)
{
  guard([&]() { return step(brain::ActivateAgent{agentId.value(), false}); });
}


void AllocatorProcess::updateWhitelist(const Option<hashset<string>>& whitelist)
{
  guard([&]() {
    brain::SetWhitelist event;
    event.restricted = whitelist.isSome();
    if (whitelist.isSome()) {
      for (const string& hostname : whitelist.get()) {
        event.hostnames.insert(brain::toText(hostname));
      }
    }
    return step(event);
  });
}


void AllocatorProcess::updateUnavailability(
    const SlaveID& agentId,
    const Option<Unavailability>& unavailability)
{
  guard([&]() {
    auto found = agents.find(agentId);
    if (found != agents.end()) {
      found->second.unavailability = unavailability;
    }
    return step(brain::SetUnavailability{
        agentId.value(), toUnavailability(unavailability)});
  });
}


void AllocatorProcess::updateInverseOffer(
    const SlaveID& agentId,
    const FrameworkID& frameworkId,
    const Option<mesos::UnavailableResources>&,
    const Option<Status>& status,
    const Option<mesos::Filters>& filters)
{
  guard([&]() {
    brain::AnswerInverseOffer event;
    event.agent = agentId.value();
    event.framework = frameworkId.value();
    event.hasStatus = status.isSome();
    event.refuseMs = filterMs(filters);

    if (status.isSome()) {
      event.status = status->status() == Status::ACCEPT
          ? wire::InverseOfferUpdate::STATUS_ACCEPT
          : wire::InverseOfferUpdate::STATUS_DECLINE;
      event.atNs = status->timestamp().nanoseconds();
    }
    return step(event);
  });
}


Future<AllocatorProcess::Statuses> AllocatorProcess::getInverseOfferStatuses()
{
  return answer<Statuses>([this]() { return inverseOfferStatuses(); });
}


AllocatorProcess::Statuses AllocatorProcess::inverseOfferStatuses() const
{
  Statuses result;

  for (const auto& entry : brain.maintenance().answers()) {
    const SlaveID agentId = agentIdOf(entry.first);
    hashmap<FrameworkID, Status>& statuses = result[agentId];

    for (const auto& answer : entry.second) {
      const FrameworkID frameworkId = frameworkIdOf(answer.first);
      Status& status = statuses[frameworkId];
      status.set_status(
          answer.second.status == wire::InverseOfferUpdate::STATUS_ACCEPT
              ? Status::ACCEPT
              : Status::DECLINE);
      *status.mutable_framework_id() = frameworkId;
      status.mutable_timestamp()->set_nanoseconds(answer.second.atNs);
    }
  }

  return result;
}


void AllocatorProcess::updateAllocation(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& offered,
    const vector<ResourceConversion>& conversions)
{
  guard([&]() -> string {
    vector<brain::RoleParts> roles = objects.toRoleParts(offered);
    const Try<Resources> converted = offered.apply(conversions);

    if (roles.size() != 1 || converted.isError()) {
      return step(brain::Misfit{
          "Operations of framework " + frameworkId.value() + " on agent " +
          agentId.value() + " are not possible: " +
          (converted.isError()
               ? converted.error()
               : "they name " + std::to_string(roles.size()) + " roles")});
    }

    brain::ConvertHeld event;
    event.agent = agentId.value();
    event.framework = frameworkId.value();
    event.role = roles[0].role;
    event.offered = std::move(roles[0].parts);
    for (const ResourceConversion& each : conversions) {
      event.conversions.push_back(brain::Conversion{
          objects.toParts(each.consumed), objects.toParts(each.converted)});
    }
    const string wrong = step(event);
    showConsumed(agentId);
    return wrong;
  });
}


// Mesos applies the operations to resources that are not held. Held copies of a
// shared volume do not prevent other operations, but the volume must not be
// destroyed while they are held.
Future<Nothing> AllocatorProcess::updateAvailable(
    const SlaveID& agentId,
    const vector<mesos::Offer::Operation>& operations)
{
  const string wrong = guard([&]() -> string {
    const brain::Cluster& cluster = brain.cluster();
    const brain::Agent* agent =
        cluster.agents.find(cluster.agentHandles.find(agentId.value()));
    if (agent == nullptr) {
      return "The agent is not known";
    }

    brain::Parts parts = cluster.books.free(*agent);
    for (const brain::AgentResource& resource : agent->resources) {
      if (resource.held > 0 &&
          cluster.classes.traits(resource.resourceClass).shared) {
        brain::subtract(
            {brain::Part{
                resource.resourceClass, resource.total, brain::Spans()}},
            &parts);
      }
    }

    const Resources before = objects.toResources(parts);
    const Try<Resources> after = before.apply(operations);
    if (after.isError()) {
      return after.error();
    }

    brain::ConvertFree event;
    event.agent = agentId.value();
    event.conversion.consumed = objects.toParts(before - after.get());
    event.conversion.converted = objects.toParts(after.get() - before);
    const string wrong = step(event);
    showConsumed(agentId);
    return wrong;
  });

  if (!wrong.empty()) {
    return Failure(wrong);
  }

  // The answer reaches the master before any later offer, because both come
  // from this actor.
  return Nothing();
}


void AllocatorProcess::transitionOfferedToAllocated(
    const SlaveID& agentId,
    const Resources& resources)
{
  guard([&]() {
    const brain::Transition event{
        agentId.value(), objects.toRoleParts(resources)};
    if (builtin != nullptr) {
      builtin->consumption.use(event.agent, event.parts, 1);
    }
    return step(event);
  });
}


void AllocatorProcess::recoverResources(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& resources,
    const Option<mesos::Filters>& filters,
    bool isAllocated)
{
  guard([&]() {
    brain::Release event;
    event.agent = agentId.value();
    event.framework = frameworkId.value();
    event.parts = objects.toRoleParts(resources);
    event.refuseMs = filterMs(filters);
    event.allocated = isAllocated;

    // Do this before `step`, because the books may forget the resource classes.
    if (builtin != nullptr && isAllocated) {
      builtin->consumption.use(event.agent, event.parts, -1);
    }
    return step(std::move(event));
  });
}

} // namespace adapter {
} // namespace allocator {
