#include "adapter/process.hpp"

#include <iterator>
#include <utility>

#include <glog/logging.h>

#include "adapter/convert.hpp"
#include "adapter/holdings.hpp"

using std::map;
using std::string;
using std::vector;

using process::Failure;
using process::Future;

namespace allocator {
namespace adapter {
namespace {

// Changes of amounts by kind.
using Changes = map<uint32_t, int64_t>;

// `after` less `before`, where they differ.
Changes difference(const Changes& before, const Changes& after)
{
  Changes result = after;
  for (const auto& entry : before) {
    result[entry.first] -= entry.second;
  }

  for (auto entry = result.begin(); entry != result.end();) {
    entry = entry->second == 0 ? result.erase(entry) : std::next(entry);
  }

  return result;
}


Changes toChanges(const Resources& resources, KindTable* kinds)
{
  const Amounts amounts = toAmounts(resources, kinds);
  return Changes(amounts.begin(), amounts.end());
}


void describe(const Changes& change, wire::UpdateAllocation* update)
{
  for (const auto& entry : change) {
    wire::Amounts* side = entry.second < 0 ? update->mutable_consumed()
                                           : update->mutable_converted();
    side->add_kind(entry.first);
    side->add_amount(entry.second < 0 ? -entry.second : entry.second);
  }
}


// One row of those amounts that are above 0 times `sign`.
wire::Holdings row(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Changes& amounts,
    int64_t sign)
{
  wire::Holdings result;

  for (const auto& entry : amounts) {
    if (entry.second * sign > 0) {
      result.add_kind(entry.first);
      result.add_amount(entry.second * sign);
    }
  }

  if (result.kind_size() > 0) {
    result.add_framework(framework);
    result.add_role(role);
    result.add_agent(agent);
  }

  return result;
}

} // namespace {


void AllocatorProcess::updateAllocation(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& offered,
    const vector<ResourceConversion>& conversions)
{
  const Ledger::Agent* books = state.ledger.find(agentId);
  const map<string, Resources> roles = byRole(offered);

  if (books == nullptr || roles.size() != 1) {
    return;
  }

  KindTable* kinds = &state.handles.kinds;
  auto amountsHeld = [&]() {
    auto held = books->held.find(frameworkId);
    return held == books->held.end() ? Changes()
                                     : toChanges(held->second, kinds);
  };

  const Changes totalBefore = toChanges(books->total, kinds);
  const Changes heldBefore = amountsHeld();
  const Try<Nothing> converted =
      state.ledger.convertHeld(frameworkId, agentId, offered, conversions);

  if (converted.isError()) {
    LOG(ERROR) << "Operations of framework " << frameworkId << " on agent "
               << agentId << " do not fit the books: " << converted.error();
    ++misfits;
    return;
  }

  const Changes ofTotal =
      difference(totalBefore, toChanges(books->total, kinds));
  const Changes ofHeld = difference(heldBefore, amountsHeld());

  // More, or fewer, copies of a shared volume change what is held only.
  const Changes copies = difference(ofTotal, ofHeld);
  const uint32_t framework = state.handles.frameworks.bind(frameworkId);
  const uint32_t role = state.handles.roles.bind(roles.begin()->first);
  const uint32_t agent = state.handles.agents.bind(agentId);

  if (!ofTotal.empty()) {
    wire::Event event;
    event.mutable_update_allocation()->set_framework(framework);
    event.mutable_update_allocation()->set_role(role);
    event.mutable_update_allocation()->set_agent(agent);
    describe(ofTotal, event.mutable_update_allocation());
    send(std::move(event));
  }

  const wire::Holdings more = row(framework, role, agent, copies, 1);
  if (more.framework_size() > 0) {
    wire::Event event;
    *event.mutable_hold() = more;
    send(std::move(event));
  }

  const wire::Holdings fewer = row(framework, role, agent, copies, -1);
  if (fewer.framework_size() > 0) {
    wire::Event event;
    *event.mutable_release()->mutable_released() = fewer;
    event.mutable_release()->add_refuse_ms(-1);
    event.mutable_release()->add_allocated(false);
    send(std::move(event));
  }
}


Future<Nothing> AllocatorProcess::updateAvailable(
    const SlaveID& agentId,
    const vector<mesos::Offer::Operation>& operations)
{
  const Ledger::Agent* books = state.ledger.find(agentId);

  if (books == nullptr) {
    return Failure("The agent is not known");
  }

  KindTable* kinds = &state.handles.kinds;
  const Changes before = toChanges(books->total, kinds);
  const Try<Nothing> converted = state.ledger.convertFree(agentId, operations);

  if (converted.isError()) {
    return Failure(converted.error());
  }

  // A new label, say, is another object of the same kind.
  const Changes change = difference(before, toChanges(books->total, kinds));
  if (!change.empty()) {
    wire::Event event;
    event.mutable_update_allocation()->set_agent(
        state.handles.agents.bind(agentId));
    describe(change, event.mutable_update_allocation());
    send(std::move(event));
  }

  // The master hears of this before it hears of any later offer, for
  // both come from this actor.
  return Nothing();
}


void AllocatorProcess::transitionOfferedToAllocated(
    const SlaveID& agentId,
    const Resources& resources)
{
  const Ledger::Agent* books = state.ledger.find(agentId);

  if (!following || books == nullptr || resources.empty()) {
    return;
  }

  // The master does not say whose they are; where only one can be meant
  // the sidecar need not guess.
  uint32_t framework = 0;
  size_t holders = 0;
  for (const auto& held : books->held) {
    if (books->held.size() == 1 || held.second.contains(resources)) {
      ++holders;
      framework = state.handles.frameworks.bind(held.first);
    }
  }

  for (const auto& entry : byRole(resources)) {
    pending.transition(
        holders == 1 ? framework : 0,
        state.handles.roles.bind(entry.first),
        state.handles.agents.bind(agentId),
        toAmounts(entry.second, &state.handles.kinds));
  }

  sendSoon();
}


void AllocatorProcess::recoverResources(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& resources,
    const Option<mesos::Filters>& filters,
    bool isAllocated)
{
  if (resources.empty() || state.ledger.find(agentId) == nullptr) {
    return; // What was on the agent went with it.
  }

  const Resources released =
      state.ledger.release(frameworkId, agentId, resources);

  const int64_t refuseMs = filters.isSome() ? refusalMs(filters.get()) : -1;
  auto framework = refuseMs > 0 ? state.frameworks.find(frameworkId)
                                : state.frameworks.end();

  if (framework != state.frameworks.end() && framework->second.active) {
    for (const auto& entry : byRole(resources)) {
      if (framework->second.roles.count(entry.first) > 0) {
        Resources refused = entry.second;
        refused.unallocate();
        state.filters.add(
            frameworkId, entry.first, agentId, refused, refuseMs, nowMs());
      }
    }
  }

  if (!following || released.empty()) {
    return;
  }

  for (const auto& entry : byRole(released)) {
    pending.release(
        state.handles.frameworks.bind(frameworkId),
        state.handles.roles.bind(entry.first),
        state.handles.agents.find(agentId),
        toAmounts(entry.second, &state.handles.kinds),
        refuseMs,
        isAllocated);
  }

  sendSoon();
}

} // namespace adapter {
} // namespace allocator {
